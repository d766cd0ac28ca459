package engine_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/extract"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/internal/store/memory"
)

// bundle is an engine on a fresh store inside a synctest bubble.
type bundle struct {
	t          *testing.T
	store      *memory.Store
	engine     *engine.Engine
	faults     *faults
	inferences atomic.Int64
	extract    func(context.Context, protocol.Input) ([]protocol.Fact, error)

	mu    sync.Mutex
	steps []protocol.Step
}

// told is every step so far.
func (b *bundle) told() []protocol.Step {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.steps)
}

// faults is armed by point; each fault fires once.
type faults struct {
	mu    sync.Mutex
	armed map[protocol.Point][]protocol.Fault
}

func (f *faults) At(p protocol.Point, _ protocol.Task) protocol.Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.armed[p]
	if len(q) == 0 {
		return protocol.Fault{}
	}
	f.armed[p] = q[1:]
	return q[0]
}

// Quiet lets the engine write steps together as long as nothing is armed.
func (f *faults) Quiet(string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, q := range f.armed {
		if len(q) > 0 {
			return false
		}
	}
	return true
}

// stepwise has the engine write every step by itself.
type stepwise struct{}

func (stepwise) At(protocol.Point, protocol.Task) protocol.Fault { return protocol.Fault{} }

func (f *faults) arm(p protocol.Point, n int, ft protocol.Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range n {
		f.armed[p] = append(f.armed[p], ft)
	}
}

type compare struct{}

func (compare) Same(a, b string) bool { return extract.Same(a, b) }
func (compare) Score(q, text string) float64 {
	return extract.Score(extract.Embed(q), extract.Embed(text))
}

// bubble runs f with a started engine and checks the invariants after it.
func bubble(t *testing.T, f func(t *testing.T, b *bundle)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bundle{t: t, store: memory.New(66438), faults: &faults{armed: map[protocol.Point][]protocol.Fault{}}}
		b.engine = b.node()
		defer b.engine.Close()
		if err := b.engine.PutWorkspace(t.Context(), protocol.Workspace{ID: "w", AddsPerMonth: 10, Credits: 20}); err != nil {
			t.Fatal(err)
		}
		b.engine.Start()
		f(t, b)
		if err := b.engine.Check(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// node is another engine on the same store.
func (b *bundle) node() *engine.Engine {
	return engine.New(engine.Config{Store: b.store, Scheduler: sched.Real(), Comparer: compare{}, Faults: b.faults,
		OnError: func(err error) { b.t.Error(err) },
		Observe: func(s protocol.Step) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.steps = append(b.steps, s)
		},
		Extractor: protocol.ExtractorFunc(func(ctx context.Context, in protocol.Input) ([]protocol.Fact, error) {
			b.inferences.Add(1)
			if b.extract != nil {
				return b.extract(ctx, in)
			}
			var out []protocol.Fact
			out = append(out, extract.Facts(in.Text)...)
			return out, nil
		})})
}

func add(text, ref string) protocol.Command {
	return protocol.Command{Kind: protocol.MemorySyncAdd, Scope: protocol.Scope{Tenant: "default", EndUser: "sam"}, Text: text, ClientRef: ref}
}

func infer(key, text string) protocol.Command {
	return protocol.Command{Kind: protocol.Infer, Scope: protocol.Scope{UserID: "sam"}, Text: text, Key: key}
}

func (b *bundle) submit(c protocol.Command) engine.Submitted {
	b.t.Helper()
	s, err := b.engine.Submit(b.t.Context(), "w", c)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// end waits for a task's end, for up to an hour of the bubble.
func (b *bundle) end(id string, want protocol.State) protocol.Task {
	b.t.Helper()
	t, err := b.engine.Await(b.t.Context(), "w", id, time.Hour, engine.Ended)
	if err != nil || t.State != want {
		b.t.Fatalf("task is %s (%+v, attempt %d), want %s; %v", t.State, t.Failure, t.Attempts, want, err)
	}
	return t
}

func (b *bundle) balance(u protocol.Unit) protocol.Balance {
	b.t.Helper()
	bs, err := b.engine.Usage(b.t.Context(), "w")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, x := range bs {
		if x.Account.Unit == u {
			return x
		}
	}
	return protocol.Balance{}
}

func (b *bundle) records() int {
	b.t.Helper()
	s, err := b.store.Snapshot(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return len(s.Records)
}

// text is what a record says.
func (b *bundle) text(id string) string {
	b.t.Helper()
	r, err := b.store.Record(b.t.Context(), "w", id)
	if err != nil {
		b.t.Fatal(err)
	}
	return r.Text
}

const note = "My team ships releases every Thursday."
