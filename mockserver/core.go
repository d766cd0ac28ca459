package mockserver

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/memwrite/memwrite-go/internal/backend"
	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/service"
)

// core is the protocol's part of a server: store and engine, which Reset and
// Restore replace as a whole, and the faults that act on writes.
type core struct {
	*backend.Backend

	srv        *Server
	mu         sync.RWMutex
	store      protocol.Store
	engine     *engine.Engine
	workspaces atomic.Pointer[map[string]bool] // that were made; replaced, never changed
	script     atomic.Pointer[Script]          // nil: the server's own rules
	same       atomic.Pointer[Same]            // nil: the server's own comparison
}

// firstNumber is the first id on /memory/*, the one the articles begin with.
const firstNumber = 66437

func newCore(s *Server) (*core, error) {
	c := &core{srv: s}
	store, err := s.cfg.open(firstNumber)
	if err != nil {
		return nil, err
	}
	return c, c.replace(store)
}

// replace lets the core run on a store, with the workspace made if need be. The
// old engine is closed outside the lock, which its runners may be waiting for.
func (c *core) replace(store protocol.Store) error {
	next := engine.New(engine.Config{
		Store: store, Scheduler: c.srv.clock, Extractor: c, Comparer: c,
		Faults: c.srv.faults, Limits: c.srv.cfg.limits(), Observe: c.srv.observe,
	})
	c.srv.watch.Forget()
	c.mu.Lock()
	oldStore, oldEngine := c.store, c.engine
	c.store, c.engine = store, next
	c.workspaces.Store(&map[string]bool{})
	if c.Backend == nil {
		c.Backend = backend.New(next, c.srv.clock)
	}
	c.Swap(next)
	err := c.ensure(context.Background(), c.srv.Workspace)
	next.Start()
	c.mu.Unlock()
	c.srv.hooks.Forget()
	if oldEngine != nil {
		oldEngine.Close()
		_ = oldStore.Close()
	}
	return err
}

// used makes a workspace the first time it is used, which is rare.
func (c *core) used(ctx context.Context, id string) error {
	if (*c.workspaces.Load())[id] {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ensure(ctx, id)
}

// ensure is used with the lock held.
func (c *core) ensure(ctx context.Context, id string) error {
	made := *c.workspaces.Load()
	if made[id] {
		return nil
	}
	cfg := c.srv.cfg
	err := c.store.PutWorkspace(ctx, protocol.Workspace{
		ID: id, AddsPerMonth: cfg.adds, StrictQuota: cfg.strictQuota, Credits: cfg.credits,
		Extraction: protocol.ExtractionPolicy{InvalidOutputAttempts: cfg.invalid},
	})
	if err == nil {
		made = maps.Clone(made)
		made[id] = true
		c.workspaces.Store(&made)
	}
	return err
}

func (c config) limits() engine.Limits {
	l := engine.Limits{MaxAttempts: c.attempts}
	if !c.realTimes {
		l.Lease, l.RepairEvery = 500*time.Millisecond, 50*time.Millisecond
		l.BackOff = protocol.BackOff{Base: 10 * time.Millisecond, Cap: 100 * time.Millisecond}
	}
	return l
}

func (c *core) close() {
	store, eng := c.now()
	eng.Close()
	_ = store.Close()
}

// now is the store and engine of this moment.
func (c *core) now() (protocol.Store, *engine.Engine) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.store, c.engine
}

// Submit adds the faults that refuse a write before it is accepted.
func (c *core) Submit(ctx context.Context, w service.Write) (service.Task, bool, error) {
	matches := func(f *Fault) bool {
		return f.Key == "" || f.Key == w.Key || (w.Operation == service.OpTurn && f.Key == w.Text)
	}
	if w.Scope.Service == service.ServiceFishMem {
		if c.exhausted(ctx, ExhaustCredits, w.Key, matches) {
			return service.Task{}, false, service.ErrCredits
		}
	} else if w.PaidBy == "" && c.exhausted(ctx, ExhaustQuota, w.Key, matches) {
		if c.srv.cfg.strictQuota {
			return service.Task{}, false, service.ErrQuotaStrict
		}
		return service.Task{}, false, service.ErrQuotaSilent
	}
	if err := c.used(ctx, w.Workspace); err != nil {
		return service.Task{}, false, err
	}
	return c.Backend.Submit(ctx, w)
}

// exhausted says that an account is to be empty for this call, and notes it on
// the call's entry of the journal.
func (c *core) exhausted(ctx context.Context, kind Kind, key string, matches func(*Fault) bool) bool {
	if !c.srv.faults.some.Load() {
		return false
	}
	what := Strike{Key: key}
	e, journaled := ctx.Value(entryKey{}).(*entry)
	if journaled {
		what.Request = e.seq
	}
	if c.srv.faults.strike(func() Strike { return what }, matches, kind) == nil {
		return false
	}
	if journaled {
		c.srv.journal.change(func() { e.fault = kind })
	}
	return true
}

// Delete may be the first that a workspace asks for.
func (c *core) Delete(ctx context.Context, workspace string, d service.Deletion) ([]string, bool, error) {
	if err := c.used(ctx, workspace); err != nil {
		return nil, false, err
	}
	return c.Backend.Delete(ctx, workspace, d)
}

// Redrive has to be paid anew, so the same fault refuses it; its Key is the
// event's id here.
func (c *core) Redrive(ctx context.Context, workspace, id string) (service.Task, error) {
	if c.exhausted(ctx, ExhaustCredits, id, func(f *Fault) bool { return f.Key == "" || f.Key == id }) {
		return service.Task{}, service.ErrCredits
	}
	return c.Backend.Redrive(ctx, workspace, id)
}

// Usage is also asked of workspaces that have written nothing yet.
func (c *core) Usage(ctx context.Context, workspace string) (service.Usage, error) {
	if err := c.used(ctx, workspace); err != nil {
		return service.Usage{}, err
	}
	return c.Backend.Usage(ctx, workspace)
}
