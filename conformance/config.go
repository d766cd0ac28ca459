package conformance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Endpoint is one service of a server: its base URL without the paths of the
// wire, and an API key that may read and write.
type Endpoint struct {
	URL string
	Key string
}

// Config says which server is checked, and how. At least one service is needed.
type Config struct {
	MemorySync Endpoint
	FishMem    Endpoint

	// OtherMemorySyncKey and OtherFishMemKey are keys of another workspace of
	// the same server. Without one the isolation of that wire is not checked.
	OtherMemorySyncKey string
	OtherFishMemKey    string

	// ControlURL is where the reference server's /_control is, and
	// ControlToken what it asks of callers that are not on its machine. Empty:
	// no faults are injected.
	ControlURL   string
	ControlToken string

	// AllowWrites lets a run write to a service that is neither on this machine
	// nor opens its control API.
	AllowWrites bool

	// Only narrows a run to the checks whose name has one of these prefixes.
	Only []string

	// Patience is how long one write may take to end; 2 min. A task whose
	// runner is killed takes as long as the server's lease.
	Patience time.Duration

	// Parallel is how many checks run at once: 8 on this machine, otherwise 1.
	Parallel int

	// Pace is the least time between two calls to one service: none on this
	// machine, otherwise 700 ms, which fits the smallest plan of the services.
	Pace time.Duration

	// HTTPClient makes the calls; it must not retry or follow redirects of
	// writes. Default: one of its own with a timeout of 60 s a call.
	HTTPClient *http.Client

	// Planned is told what the run will spend before its first write. An error
	// ends the run there.
	Planned func(Planned) error
}

// ErrConfig is an unusable Config; the error says which field and what to do.
var ErrConfig = errors.New("conformance: bad configuration")

func (c Config) withDefaults() (Config, error) {
	if c.MemorySync.URL == "" && c.FishMem.URL == "" {
		return c, fmt.Errorf("%w: give MemorySync.URL, FishMem.URL or both", ErrConfig)
	}
	for name, e := range map[string]*Endpoint{"MemorySync": &c.MemorySync, "FishMem": &c.FishMem} {
		if e.URL == "" {
			continue
		}
		base, err := baseURL(e.URL)
		if err != nil {
			return c, fmt.Errorf("%w: %s.URL %w", ErrConfig, name, err)
		}
		e.URL = base
		if strings.TrimSpace(e.Key) == "" {
			return c, fmt.Errorf("%w: %s.Key is empty", ErrConfig, name)
		}
	}
	if c.ControlURL != "" {
		base, err := baseURL(c.ControlURL)
		if err != nil {
			return c, fmt.Errorf("%w: ControlURL %w", ErrConfig, err)
		}
		c.ControlURL = base
	}
	local := c.local()
	if c.Patience <= 0 {
		c.Patience = 2 * time.Minute
	}
	if c.Parallel <= 0 {
		c.Parallel = 1
		if local {
			c.Parallel = 8
		}
	}
	if c.Pace == 0 && !local {
		c.Pace = 700 * time.Millisecond
	}
	if c.HTTPClient == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost = 32
		c.HTTPClient = &http.Client{
			Transport: transport, Timeout: time.Minute,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	return c, nil
}

func baseURL(s string) (string, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return "", errors.New("is not a URL")
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return "", errors.New("must begin with http:// or https:// and name a host")
	case u.RawQuery != "", u.Fragment != "", u.User != nil:
		return "", errors.New("must hold no user, query or fragment")
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// local says that every service is on this machine.
func (c Config) local() bool {
	for _, e := range []Endpoint{c.MemorySync, c.FishMem} {
		if e.URL == "" {
			continue
		}
		u, err := url.Parse(e.URL)
		if err != nil || !loopback(u.Hostname()) {
			return false
		}
	}
	return true
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

func (c Config) wants(name string) bool {
	if len(c.Only) == 0 {
		return true
	}
	for _, prefix := range c.Only {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Planned is what a run does before it does it. Polls for events that are
// waited for come on top of Calls: a few a write where the server holds the
// request, up to one a second where it does not.
type Planned struct {
	Checks  int      // that will run
	NotRun  int      // that the server or the configuration rules out
	Calls   int      // HTTP calls, those that clean up included
	Credits int      // FishMem credits, at most
	Adds    int      // MemorySync adds of the month, at most
	Writes  bool     // whether anything is written
	Offers  []string // what was found
}

// String is the plan in one line.
func (p Planned) String() string {
	return fmt.Sprintf("%d checks (%d not run), %d calls, %d credits, %d adds", p.Checks, p.NotRun, p.Calls, p.Credits, p.Adds)
}

// Plan finds out what the server offers and says what a run would spend. It
// writes nothing.
func Plan(ctx context.Context, cfg Config) (Planned, error) {
	s, err := newSuite(ctx, cfg)
	if err != nil {
		return Planned{}, err
	}
	return s.plan(), nil
}
