package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/memwrite/memwrite-go/internal/sched"
)

// Config makes a Client.
type Config struct {
	// BaseURL is the service. Only its scheme, host and port are looked at: a
	// call to any other is refused before it is sent.
	BaseURL *url.URL

	// HTTPClient lends its Transport and Jar. Its Timeout, when set, bounds
	// each try, as TryTimeout does, and not the call. Its CheckRedirect is not
	// used. Nil: a clone of http.DefaultTransport, proxies from the environment
	// included, that keeps up to 64 idle connections.
	HTTPClient *http.Client

	Scheduler sched.Scheduler // nil: sched.Real()
	Policy    Policy

	// Classify decides what an answer means. It sees the body, which may be
	// cut (Answer.Truncated, Answer.TooLarge); such an answer is never a
	// success, whatever Classify says: a truncated one becomes NoAnswer, one
	// that is too large Final. A Call may bring its own.
	Classify func(*Answer) Decision

	// Observe is told what happens, from many goroutines at once. The tries of
	// one call come in order; so do the events of the gate and the pause, one
	// at a time, though not always from the goroutine that brought them about.
	// It may call the client, and must not block.
	Observe func(Event)

	Header    http.Header // added to every request that does not have the name already
	UserAgent string
}

// idlePerHost is how many idle connections to the service are kept.
const idlePerHost = 64

// One HTTP/2 connection carries all calls, and a try that times out on it does
// not close it. When the other side is gone without a word, behind a load
// balancer or a NAT that forgot it, every try of every call would go the same
// way. A ping after so long a silence finds out within the first try.
const (
	pingAfter   = 10 * time.Second
	pingTimeout = 5 * time.Second
)

// Client makes the tries of all calls to one service. It is safe for
// concurrent use. Its budget, gate and pause are shared by its calls.
type Client struct {
	origin   *url.URL
	base     http.RoundTripper
	jar      http.CookieJar
	owned    *http.Transport
	sched    sched.Scheduler
	policy   Policy
	classify func(*Answer) Decision
	observe  func(Event)
	header   http.Header
	budget   *budget
	gate     *gate
	calls    atomic.Uint64
}

// New checks cfg and makes a Client. Nothing is sent.
func New(cfg Config) (*Client, error) {
	switch u := cfg.BaseURL; {
	case u == nil:
		return nil, errors.New("transport: no base URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("transport: the base URL's scheme is %q, not http or https", u.Scheme)
	case u.Host == "":
		return nil, errors.New("transport: the base URL has no host")
	case cfg.Classify == nil:
		return nil, errors.New("transport: no Classify")
	}
	c := &Client{
		origin: cfg.BaseURL, sched: cfg.Scheduler, policy: cfg.Policy.withDefaults(),
		classify: cfg.Classify, observe: cfg.Observe, header: cfg.Header.Clone(),
	}
	if c.sched == nil {
		c.sched = sched.Real()
	}
	if cfg.UserAgent != "" {
		if c.header == nil {
			c.header = http.Header{}
		}
		c.header.Set("User-Agent", cfg.UserAgent)
	}
	if hc := cfg.HTTPClient; hc != nil {
		c.base, c.jar = hc.Transport, hc.Jar
		if hc.Timeout > 0 {
			c.policy.TryTimeout = min(c.policy.TryTimeout, hc.Timeout)
		}
		if c.base == nil {
			c.base = http.DefaultTransport
		}
	} else if t, ok := http.DefaultTransport.(*http.Transport); ok {
		// The default keeps two connections of a host. A client that many
		// workers share would open a new one for nearly every call.
		c.owned = t.Clone()
		c.owned.MaxIdleConnsPerHost = max(c.owned.MaxIdleConnsPerHost, idlePerHost)
		if c.owned.HTTP2 == nil {
			c.owned.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout}
		}
		c.base = c.owned
	} else { // somebody replaced it; they know why
		c.base = http.DefaultTransport
	}
	c.budget = newBudget(c.policy.Budget)
	c.gate = newGate(c.sched, c.policy, c.observe)
	return c, nil
}

// Close closes the idle connections of a transport the client made itself. It
// ends no call, and the client can be used on. A second Close does the same.
func (c *Client) Close() {
	if c.owned != nil {
		c.owned.CloseIdleConnections()
	}
}

// Do makes the tries of one call and returns when its answer is of class
// Success, or a *Failure. After ctx has ended nothing more is sent.
func (c *Client) Do(ctx context.Context, call Call) (*Result, error) {
	r := &run{c: c, call: call, ctx: ctx}
	if r.call.Classify == nil {
		r.call.Classify = c.classify
	}
	return r.do()
}
