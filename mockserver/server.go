package mockserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/internal/extract"
	"github.com/memwrite/memwrite-go/internal/inspector"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/internal/service"
	"github.com/memwrite/memwrite-go/internal/webhook"
)

// TB is the part of testing.TB that this package uses, so that it does not
// import testing and other test frameworks can be adapted to it.
type TB interface {
	Helper()
	Cleanup(func())
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Server is a running reference server. All methods are safe for concurrent
// use.
type Server struct {
	// URL is the address of both services, without a final slash.
	URL string
	// MemorySyncKey and FishMemKey are keys that may do everything in the
	// server's one workspace.
	MemorySyncKey string
	FishMemKey    string
	// Workspace is the tenant_id of those keys.
	Workspace string
	// ControlToken is what /_control/* asks of callers that are not on this
	// machine, in the header X-Control-Token.
	ControlToken string

	cfg       config
	clock     *clock
	faults    *faults
	journal   *journal
	keys      *service.Keys
	core      *core
	svc       *service.Service
	watch     *inspector.Watch
	hooks     *webhook.Sender
	hooksOnce sync.Once
	inspector *inspector.Inspector

	http    *http.Server
	ctx     context.Context
	end     context.CancelFunc
	active  sync.WaitGroup
	closing atomic.Bool
	closed  chan struct{}
	once    sync.Once
}

// Run starts a server that ends with the test, and fails the test if it cannot
// start. At the end it logs the faults that were armed and never struck.
func Run(t TB, opts ...Option) *Server {
	t.Helper()
	s, err := Start(opts...)
	if err != nil {
		t.Fatalf("mockserver: %v", err)
	}
	t.Cleanup(func() {
		for _, f := range s.Unfired() {
			t.Logf("mockserver: %s was armed and never struck", f)
		}
		s.Close()
	})
	return s
}

// Start starts a server on a free port of this machine, for a program. The
// caller closes it.
func Start(opts ...Option) (*Server, error) {
	cfg := defaults()
	for _, o := range opts {
		o(&cfg)
	}
	clk := newClock(sched.Real())
	ctx, end := context.WithCancel(context.Background())
	s := &Server{
		URL:           "http://memwrite.test",
		MemorySyncKey: "ms_test_" + token(), FishMemKey: "fm_" + token(), ControlToken: token(),
		Workspace: cfg.workspace,
		cfg:       cfg, clock: clk, faults: &faults{now: clk.Now}, journal: &journal{}, watch: inspector.NewWatch(),
		ctx: ctx, end: end, closed: make(chan struct{}),
	}
	s.keys = service.NewKeys(
		service.NewKey(s.MemorySyncKey, s.Workspace, service.ServiceMemorySync, service.ScopeMemoryAll, service.ScopeProjectsRead),
		service.NewKey(s.FishMemKey, s.Workspace, service.ServiceFishMem, service.ScopeMemoryRead, service.ScopeMemoryWrite, service.ScopeOperationsRead),
	)
	s.hooks = s.newHooks()
	var err error
	if s.core, err = newCore(s); err != nil {
		end()
		return nil, err
	}
	s.svc = service.New(s.core, s.keys, clk, extract.LowValue, cfg.service)
	s.inspector = s.newInspector()
	if cfg.hook.URL != "" {
		s.SetWebhook("", cfg.hook.URL, cfg.hook.Secret)
	}
	if cfg.inProcess {
		return s, nil
	}
	listener, err := net.Listen("tcp", cfg.address)
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("mockserver: %w", err)
	}
	s.URL = "http://" + listener.Addr().String()
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		ReadHeaderTimeout: cfg.readTimeout,
		ReadTimeout:       cfg.readTimeout,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          silent(),
	}
	go func() {
		defer close(s.closed)
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.end()
		}
	}()
	return s, nil
}

// Close ends the server, its requests and its runners, and waits until they
// are gone; open requests are cut off. A second call does nothing.
func (s *Server) Close() {
	s.once.Do(func() {
		s.closing.Store(true)
		s.faults.clear()
		s.end()
		if s.http != nil {
			_ = s.http.Close()
			<-s.closed
		}
		s.hooks.Close()
		s.core.close()
		s.active.Wait()
	})
}

// Client is an SDK client for both services, closed with the test. It talks to
// the server in-process when that has no listener. Later options win.
func (s *Server) Client(t TB, opts ...memwrite.Option) *memwrite.Client {
	t.Helper()
	all := []memwrite.Option{memwrite.WithMemorySync(s.URL, s.MemorySyncKey), memwrite.WithFishMem(s.URL, s.FishMemKey)}
	if s.cfg.inProcess {
		all = append(all, memwrite.WithHTTPClient(&http.Client{Transport: s.RoundTripper()}))
	}
	client, err := memwrite.New(append(all, opts...)...)
	if err != nil {
		t.Fatalf("mockserver: the client: %v", err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Errorf("mockserver: closing the client: %v", err)
		}
	})
	return client
}

// Now is the time on the server's clock.
func (s *Server) Now() time.Time { return s.clock.Now() }

// Advance moves the server's clock forward and wakes whatever waits on it.
func (s *Server) Advance(d time.Duration) { s.clock.advance(d) }

// Freeze stops the server's clock; only Advance moves it then. Nothing that
// waits for a time, a runner's back-off among it, ends by itself any more.
func (s *Server) Freeze() { s.clock.freeze() }

// Thaw lets the clock run on from where it stands.
func (s *Server) Thaw() { s.clock.thaw() }

// Arm makes something go wrong. It panics on a fault that it does not know or
// that could never strike, which is a mistake in the test.
func (s *Server) Arm(f Fault) *Armed {
	a, err := s.faults.arm(f)
	if err != nil {
		panic(err)
	}
	return a
}

// Disarm takes back every fault and releases what they hold.
func (s *Server) Disarm() { s.faults.clear() }

// Journal is every request so far, oldest first, as copies.
func (s *Server) Journal() []Request { return s.journal.all() }

// NewKey makes a key of another workspace, or of this one, with the given
// permissions; service is "memorysync" or "fishmem".
func (s *Server) NewKey(workspace, svc string, scopes ...string) string {
	prefix := map[string]string{service.ServiceMemorySync: "ms_test_", service.ServiceFishMem: "fm_"}[svc]
	secret := prefix + token()
	s.keys.Put(service.NewKey(secret, workspace, svc, scopes...))
	return secret
}

// ExpireKey lets a key expire at a time of the server's clock.
func (s *Server) ExpireKey(secret, workspace, svc string, at time.Time, scopes ...string) {
	k := service.NewKey(secret, workspace, svc, scopes...)
	k.Expires = at
	s.keys.Put(k)
}

// RevokeKey revokes a key.
func (s *Server) RevokeKey(secret, workspace, svc string) {
	k := service.NewKey(secret, workspace, svc)
	k.Revoked = true
	s.keys.Put(k)
}
