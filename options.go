package memwrite

import (
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/memwrite/memwrite-go/internal/sched"
)

// Option sets one thing of a Client. New applies options in order and returns
// the first mistake.
type Option func(*settings) error

type settings struct {
	memorySync, fishMem endpoint
	httpClient          *http.Client
	retry               RetryPolicy
	project, tenant     string
	observer            Observer
	logger              *slog.Logger
	verifyText          bool
	userAgent           string
	scheduler           sched.Scheduler
	source              EventSource
}

// endpoint is one service's host and key.
type endpoint struct {
	base *url.URL
	key  string
}

// WithMemorySync sets the host and key of MemorySync. The key goes to this host
// alone, as X-API-Key.
func WithMemorySync(baseURL, apiKey string) Option {
	return func(s *settings) (err error) {
		s.memorySync, err = newEndpoint("WithMemorySync", baseURL, apiKey)
		return err
	}
}

// WithFishMem sets the host and key of FishMem. The key goes to this host
// alone, as a bearer token.
func WithFishMem(baseURL, apiKey string) Option {
	return func(s *settings) (err error) {
		s.fishMem, err = newEndpoint("WithFishMem", baseURL, apiKey)
		return err
	}
}

// FromEnvironment reads MEMORYSYNC_BASE_URL, MEMORYSYNC_API_KEY,
// FISHMEM_BASE_URL and FISHMEM_API_KEY when New runs. A service with neither
// of its two variables is left out; one with a single variable is a mistake.
func FromEnvironment() Option {
	return func(s *settings) error {
		for _, e := range []struct {
			name string
			set  func(string, string) Option
		}{{"MEMORYSYNC", WithMemorySync}, {"FISHMEM", WithFishMem}} {
			base, key := os.Getenv(e.name+"_BASE_URL"), os.Getenv(e.name+"_API_KEY")
			switch {
			case base == "" && key == "":
				continue
			case base == "":
				return invalid("New", e.name+"_BASE_URL", "not set, although "+e.name+"_API_KEY is")
			case key == "":
				return invalid("New", e.name+"_API_KEY", "not set, although "+e.name+"_BASE_URL is")
			}
			if err := e.set(base, key)(s); err != nil {
				return err
			}
		}
		return nil
	}
}

// WithHTTPClient sends through hc, which is not changed. Its Timeout bounds one
// try, beside RetryPolicy.TryTimeout; running into it is tried again. Its
// CheckRedirect is not used. Without this option the client has a clone of
// http.DefaultTransport of its own, which honours HTTP_PROXY.
func WithHTTPClient(hc *http.Client) Option {
	return func(s *settings) error {
		if hc == nil {
			return invalid("New", "WithHTTPClient", "client is nil")
		}
		s.httpClient = hc
		return nil
	}
}

// WithRetryPolicy replaces the numbers of the retries. A zero field keeps its
// default.
func WithRetryPolicy(p RetryPolicy) Option {
	return func(s *settings) error { s.retry = p; return nil }
}

// WithProject sends X-Project-ID on every MemorySync call. Without it the
// header is absent, which is not the same as empty.
func WithProject(id string) Option {
	return func(s *settings) error {
		if err := checkHeader("New", "WithProject", id); err != nil {
			return err
		}
		s.project = id
		return nil
	}
}

// WithTenant sets the tenant of turns, in place of asking GET /org/projects.
func WithTenant(id string) Option {
	return func(s *settings) error {
		if strings.TrimSpace(id) == "" {
			return invalid("New", "WithTenant", "tenant is empty")
		}
		s.tenant = id
		return nil
	}
}

// WithObserver tells o about every try, retry, gate, pause and wait.
func WithObserver(o Observer) Option {
	return func(s *settings) error { s.observer = o; return nil }
}

// WithLogger logs what an Observer sees: tries at debug level, retries, gate
// and pause at warning level. No key and no memory text is in it.
func WithLogger(l *slog.Logger) Option {
	return func(s *settings) error { s.logger = l; return nil }
}

// WithVerifyText makes Add read an already ingested memory back and answer
// ErrRefReused when it was made from another text. Off by default; it costs
// one read for each AlreadyIngested that names a memory.
func WithVerifyText(on bool) Option {
	return func(s *settings) error { s.verifyText = on; return nil }
}

// WithUserAgent puts a name before the client's own in User-Agent.
func WithUserAgent(ua string) Option {
	return func(s *settings) error {
		if err := checkHeader("New", "WithUserAgent", ua); err != nil {
			return err
		}
		s.userAgent = ua
		return nil
	}
}

// WithEventSource lets waits hear of their events from src, such as a
// [WebhookHandler]: a wait reads its event as soon as it is told, and polls a
// server that does not hold requests at a quarter of the usual pace. It never
// stops looking: a source may be silent, and the live service's is silent about
// events that FAILED. Close stops listening.
func WithEventSource(src EventSource) Option {
	return func(s *settings) error {
		if src == nil {
			return invalid("New", "WithEventSource", "source is nil")
		}
		s.source = src
		return nil
	}
}

// WithScheduler sets where time, waits and randomness come from. It is for this
// module's own simulations: the type is internal, so only they can call it.
func WithScheduler(sc sched.Scheduler) Option {
	return func(s *settings) error { s.scheduler = sc; return nil }
}

func newEndpoint(option, base, key string) (endpoint, error) {
	u, err := url.Parse(base)
	switch {
	case base == "":
		return endpoint{}, invalid("New", option, "base URL is empty")
	case !strings.Contains(base, "://"): // "127.0.0.1:8080" does not parse, and "localhost:8080" has a scheme
		return endpoint{}, invalid("New", option, "base URL has no scheme; it must begin with http:// or https://")
	case err != nil:
		return endpoint{}, invalid("New", option, "base URL does not parse") // its text may hold a password
	case u.Scheme != "http" && u.Scheme != "https":
		return endpoint{}, invalid("New", option, "base URL has another scheme; it must begin with http:// or https://")
	case u.Host == "" || u.Hostname() == "":
		return endpoint{}, invalid("New", option, "base URL has no host")
	case u.RawQuery != "" || u.ForceQuery:
		return endpoint{}, invalid("New", option, "base URL has a query; only scheme, host and path are allowed")
	case u.Fragment != "":
		return endpoint{}, invalid("New", option, "base URL has a fragment; only scheme, host and path are allowed")
	case u.User != nil:
		return endpoint{}, invalid("New", option, "base URL has a user; only scheme, host and path are allowed")
	}
	if err := checkHeader("New", option, key); err != nil {
		err.Message = "API key: " + err.Message
		return endpoint{}, err
	}
	if strings.ContainsAny(key, " \t") {
		return endpoint{}, invalid("New", option, "API key holds a space")
	}
	u.Path = strings.TrimRight(u.Path, "/") + "/"
	u.RawPath = ""
	return endpoint{u, key}, nil
}
