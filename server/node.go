package server

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/memwrite/memwrite-go/internal/backend"
	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/extract"
	"github.com/memwrite/memwrite-go/internal/inspector"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/internal/service"
	"github.com/memwrite/memwrite-go/internal/webhook"
)

// Options is what a node is made of. Store is needed; the rest has defaults.
type Options struct {
	Store protocol.Store // closed by Close
	// Keys are the API keys that are accepted; none accepts nobody.
	Keys []service.Key
	// Workspaces are made, or changed to what is said here, at the start.
	Workspaces []protocol.Workspace

	Scheduler sched.Scheduler    // the store's clock, or else the machine's
	Extractor protocol.Extractor // the rules without a model
	Comparer  protocol.Comparer  // by words
	Projector protocol.Projector // none; closed by Close if it can be
	Wakeups   protocol.Wakeups   // inside this process; closed by Close if it can be
	Faults    protocol.Faults    // none
	Limits    engine.Limits
	Service   service.Options
	Log       *slog.Logger // none

	// Inspect serves the inspector's page under /_inspector/, to browsers on
	// this machine; InspectorToken lets others in who give it as the password.
	Inspect        bool
	InspectorToken string
	// Metrics serves /metrics for Prometheus, without a key.
	Metrics bool
	// Webhooks are where the messages of a workspace go. Each node that has a
	// target tells all of them, so give it to one.
	Webhooks map[string]webhook.Target
	// Observe is told of every step of a write; it must not block.
	Observe func(protocol.Step)
	// CheckpointEvery is how often a store that can is told to empty its log of
	// what was redacted; 1 min.
	CheckpointEvery time.Duration
}

// checkpointer is a store that keeps a log of what it wrote.
type checkpointer interface {
	Checkpoint(ctx context.Context) error
}

// clocked is a store with a clock that its nodes have in common.
type clocked interface{ Clock() sched.Scheduler }

// Node is one running server: many of them may share a store that allows it.
type Node struct {
	store   protocol.Store
	wakeups protocol.Wakeups
	index   protocol.Projector
	engine  *engine.Engine
	service *service.Service
	log     *slog.Logger
	watch   *watch
	hooks   *webhook.Sender
	inspect bool
	metrics bool
	closing atomic.Bool
	once    sync.Once
	err     error // of the first Close
	stop    context.CancelFunc
	loops   sync.WaitGroup
}

// New starts a node's runners; Handler answers requests. On an error the store
// is left open.
func New(ctx context.Context, o Options) (*Node, error) {
	if c, ok := o.Store.(clocked); ok && o.Scheduler == nil {
		o.Scheduler = c.Clock()
	}
	if o.Scheduler == nil {
		o.Scheduler = sched.Real()
	}
	if o.Extractor == nil {
		o.Extractor = extract.Rules{PlainTurn: service.PlainTurn}
	}
	if o.Comparer == nil {
		o.Comparer = extract.Comparer{}
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Service.Log = cmp.Or(o.Service.Log, o.Log)
	for _, w := range o.Workspaces {
		if err := o.Store.PutWorkspace(ctx, w); err != nil {
			return nil, err
		}
	}
	n := &Node{store: o.Store, wakeups: o.Wakeups, index: o.Projector, log: o.Log, watch: newWatch(o), inspect: o.Inspect, metrics: o.Metrics}
	n.hooks = webhook.New(webhook.Config{
		Store: func() protocol.Store { return o.Store }, Scheduler: o.Scheduler,
		OnError:   func(err error) { o.Log.Error("webhooks could not be read", "error", err) },
		OnAttempt: n.told,
	})
	n.engine = engine.New(engine.Config{
		Store: o.Store, Scheduler: o.Scheduler, Extractor: o.Extractor, Comparer: o.Comparer, Projector: o.Projector,
		Wakeups: o.Wakeups, Faults: o.Faults, Limits: o.Limits,
		Observe: func(s protocol.Step) {
			n.watch.observe(s)
			if s.Kind == protocol.StepSucceeded {
				n.hooks.Nudge()
			}
			if o.Observe != nil {
				o.Observe(s)
			}
		},
		OnError: func(err error) { o.Log.Error("a step could not be made", "error", err) },
	})
	n.service = service.New(backend.New(n.engine, o.Scheduler), service.NewKeys(o.Keys...), o.Scheduler, extract.LowValue, o.Service)
	n.engine.Start()
	if len(o.Webhooks) > 0 {
		for workspace, target := range o.Webhooks {
			n.hooks.Set(workspace, target)
		}
		n.hooks.Start()
	}
	loops, stop := context.WithCancel(context.WithoutCancel(ctx))
	n.stop = stop
	if c, ok := o.Store.(checkpointer); ok {
		n.loops.Add(1)
		o.Scheduler.Go(func() { defer n.loops.Done(); n.checkpoint(loops, c, o) })
	}
	return n, nil
}

// checkpoint lets what was redacted leave the store's log too.
func (n *Node) checkpoint(ctx context.Context, c checkpointer, o Options) {
	for sched.Sleep(ctx, o.Scheduler, cmp.Or(o.CheckpointEvery, time.Minute)) == nil {
		if err := c.Checkpoint(ctx); err != nil && ctx.Err() == nil {
			n.log.Warn("the store's log could not be emptied", "error", err)
		}
	}
}

// Handler answers both services, and /healthz and /readyz without a key.
func (n *Node) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", n.ready)
	if n.metrics {
		mux.Handle("GET /metrics", n.watch.metrics)
	}
	if n.inspect {
		mux.Handle(inspector.Root, n.watch.inspector)
		mux.Handle("/", n.watch.requests.Wrap(n.service))
		return mux
	}
	mux.Handle("/", n.service)
	return mux
}

// ready says whether requests should be sent here: not while it stops, and not
// while its store does not answer.
func (n *Node) ready(w http.ResponseWriter, r *http.Request) {
	if n.closing.Load() {
		plain(w, http.StatusServiceUnavailable, "stopping\n")
		return
	}
	if _, _, err := n.store.NextDue(r.Context()); err != nil {
		plain(w, http.StatusServiceUnavailable, "the store does not answer\n")
		return
	}
	plain(w, http.StatusOK, "ok\n")
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// Serve answers on a listener until ctx is done. Then it closes the listener,
// and requests and tasks that are under way have grace to end; tasks that do not
// are given back, so that nobody waits for their lease. Close comes after it.
func (n *Node) Serve(ctx context.Context, l net.Listener, grace time.Duration) error {
	return n.ServeHandler(ctx, l, grace, nil)
}

// ServeHandler is Serve with the handler wrapped.
func (n *Node) ServeHandler(ctx context.Context, l net.Listener, grace time.Duration, wrap func(http.Handler) http.Handler) error {
	handler := n.Handler()
	if wrap != nil {
		handler = wrap(handler)
	}
	srv := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          log.New(io.Discard, "", 0), // it would name callers
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	n.closing.Store(true)
	n.watch.inspector.Close()
	until, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	var drain sync.WaitGroup
	drain.Go(func() { n.engine.Drain(until) })
	err := srv.Shutdown(until)
	drain.Wait()
	if err != nil {
		n.log.Warn("requests were cut off", "grace", grace)
		_ = srv.Close()
	}
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		return served
	}
	return nil
}

// Close ends the runners and closes the store. Tasks that run are left to their
// leases, or given back if Serve ended before. A second call does nothing more.
func (n *Node) Close() error {
	n.once.Do(func() {
		n.closing.Store(true)
		n.stop()
		n.hooks.Close()
		n.engine.Close()
		n.loops.Wait()
		for _, part := range []any{n.wakeups, n.index} {
			if c, ok := part.(interface{ Close() }); ok {
				c.Close()
			}
		}
		n.err = n.store.Close()
	})
	return n.err
}
