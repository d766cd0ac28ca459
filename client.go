package memwrite

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/internal/transport"
)

// Version is sent in User-Agent.
const Version = "0.1.0"

// Client writes to MemorySync and FishMem. Each service has its own host, key,
// connections, retry budget and gate; a key never goes to the other's host.
//
// It is safe for concurrent use. Make one for a process and share it: the
// budget, the gate and the polls of waits are shared among its callers.
type Client struct {
	memorySync, fishMem *service
	sched               sched.Scheduler
	retry               RetryPolicy
	held                time.Duration // the longest a server may take over the headers of one try
	project, tenant     string
	verifyText          bool
	observer            Observer
	calls               CallObserver // the observer, when it is one
	logger              *slog.Logger
	tenants             tenantCache
	waits               waitHub
	deaf                func() // stops listening to the event source; nil without one
}

// service is one of the two, as far as requests are concerned.
type service struct {
	client *Client
	name   string   // for observers
	option string   // the option that sets it, for errors
	base   string   // ends in "/"
	key    string   // to scrub
	addURL *url.URL // of the write that is made most
	tries  *transport.Client
	sched  sched.Scheduler
}

// New makes a Client. At least one service must be configured; a call to the
// other is ErrInvalidInput naming the option that would set it. Nothing is
// sent before the first call.
func New(opts ...Option) (*Client, error) {
	c, err := build(opts)
	var e *Error
	if errors.As(err, &e) {
		e.settings = true
	}
	return c, err
}

func build(opts []Option) (*Client, error) {
	var s settings
	for _, o := range opts {
		if err := o(&s); err != nil {
			return nil, err
		}
	}
	if s.memorySync.base == nil && s.fishMem.base == nil {
		return nil, invalid("New", "service", "none is configured; use WithMemorySync, WithFishMem or FromEnvironment")
	}
	if s.scheduler == nil {
		s.scheduler = sched.Real()
	}
	c := &Client{
		sched: s.scheduler, retry: s.retry, project: s.project, tenant: s.tenant,
		verifyText: s.verifyText, observer: s.observer, logger: s.logger,
	}
	c.held = patience(s.retry, s.httpClient)
	c.calls, _ = s.observer.(CallObserver)
	c.tenants.init()
	c.waits.init(c)
	var err error
	if s.memorySync.base != nil {
		c.memorySync, err = c.connect("memorysync", "WithMemorySync", "X-API-Key", "", s.memorySync, s)
	}
	if err == nil && s.fishMem.base != nil {
		c.fishMem, err = c.connect("fishmem", "WithFishMem", "Authorization", "Bearer ", s.fishMem, s)
	}
	if err != nil {
		return nil, err
	}
	if s.source != nil {
		c.waits.told = true
		c.deaf = sync.OnceFunc(s.source.Listen(c.waits.notify))
	}
	return c, nil
}

// patience is how long a try waits for an answer to begin, whoever bounds it.
func patience(p RetryPolicy, hc *http.Client) time.Duration {
	d := p.TryTimeout
	if d <= 0 {
		d = defaultTryTimeout
	}
	if hc == nil {
		return d
	}
	if hc.Timeout > 0 {
		d = min(d, hc.Timeout)
	}
	if t, ok := hc.Transport.(*http.Transport); ok && t.ResponseHeaderTimeout > 0 {
		d = min(d, t.ResponseHeaderTimeout)
	}
	return d
}

func (c *Client) connect(name, option, header, prefix string, e endpoint, s settings) (*service, error) {
	svc := &service{
		client: c, name: name, option: option, base: e.base.String(), key: e.key,
		addURL: e.base.JoinPath("memory/add"), sched: c.sched,
	}
	ua := "memwrite-go/" + Version
	if s.userAgent != "" {
		ua = s.userAgent + " " + ua
	}
	cfg := transport.Config{
		BaseURL: e.base, HTTPClient: s.httpClient, Scheduler: c.sched, Policy: s.retry.transport(),
		Classify: func(a *transport.Answer) transport.Decision { return svc.classify(a, nil, nil) },
		// No Accept: both services answer JSON and nothing else, and with one
		// header more net/http servers make a larger map for each request.
		Header: http.Header{http.CanonicalHeaderKey(header): {prefix + e.key}, "User-Agent": {ua}},
	}
	if c.watching() {
		cfg.Observe = svc.observe
	}
	var err error
	if svc.tries, err = transport.New(cfg); err != nil {
		return nil, invalid("New", option, err.Error())
	}
	return svc, nil
}

// Close gives idle connections back. Calls in flight go on; a Client that is
// used again opens new ones. A second Close does nothing.
func (c *Client) Close() error {
	if c.deaf != nil {
		c.deaf()
	}
	for _, s := range []*service{c.memorySync, c.fishMem} {
		if s != nil {
			s.tries.Close()
		}
	}
	return nil
}
