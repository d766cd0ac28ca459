package postgres_test

import (
	"context"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/extract"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/internal/service"
	"github.com/memwrite/memwrite-go/server"
	"github.com/memwrite/memwrite-go/server/postgres"
	"github.com/memwrite/memwrite-go/server/wakeup"
)

const (
	adder  = "ms_nodes_0123456789"
	writer = "fm_nodes_0123456789"
)

// fleet is some nodes on one database, each with connections of its own, and
// what their runners and models did.
type fleet struct {
	*testing.T
	url    string
	stores []*postgres.Store
	nodes  []*httptest.Server

	mu       sync.Mutex
	steps    map[protocol.StepKind]int
	inferred map[string]int // text to calls of a model
}

// station says how one node differs.
type station struct {
	clock       sched.Scheduler // of the machine; nil is the real one
	ownClock    bool            // judge time by it: a fault
	limits      engine.Limits
	broker      func() (wakeup.Broker, error) // nil: no wake-ups at all
	slow        time.Duration                 // a model takes
	fails       *protocol.Failure             // a model's only answer
	connections int
}

func newFleet(t *testing.T, url string, stations ...station) *fleet {
	t.Helper()
	f := &fleet{T: t, url: url, steps: map[protocol.StepKind]int{}, inferred: map[string]int{}}
	for _, s := range stations {
		f.open(s)
	}
	return f
}

func (f *fleet) open(st station) {
	f.Helper()
	if st.clock == nil {
		st.clock = sched.Real()
	}
	if st.connections == 0 {
		st.connections = 4
	}
	s, err := postgres.Open(f.Context(), postgres.Options{URL: f.url, Connections: st.connections, Scheduler: st.clock, CallerClock: st.ownClock})
	must(f, err)
	o := server.Options{
		Store: s, Limits: st.limits, Workspaces: []protocol.Workspace{{ID: "default", AddsPerMonth: -1, Credits: -1}},
		Keys: []service.Key{
			service.NewKey(adder, "default", service.ServiceMemorySync, service.ScopeMemoryAll),
			service.NewKey(writer, "default", service.ServiceFishMem, service.ScopeMemoryRead, service.ScopeMemoryWrite, service.ScopeOperationsRead),
		},
		Observe: func(s protocol.Step) { f.mu.Lock(); f.steps[s.Kind]++; f.mu.Unlock() },
	}
	if st.ownClock {
		o.Scheduler = st.clock
	}
	rules := extract.Rules{PlainTurn: service.PlainTurn}
	o.Extractor = protocol.ExtractorFunc(func(ctx context.Context, in protocol.Input) ([]protocol.Fact, error) {
		f.mu.Lock()
		f.inferred[in.Text]++
		f.mu.Unlock()
		if err := sched.Sleep(ctx, sched.Real(), st.slow); err != nil {
			return nil, err
		}
		if st.fails != nil {
			return nil, st.fails
		}
		return rules.Extract(ctx, in)
	})
	if st.broker != nil {
		b, err := st.broker()
		must(f, err)
		o.Wakeups = wakeup.New(sched.Real(), b, nil)
	}
	n, err := server.New(f.Context(), o)
	must(f, err)
	h := httptest.NewServer(n.Handler())
	f.stores, f.nodes = append(f.stores, s), append(f.nodes, h)
	f.Cleanup(func() {
		h.Close()
		if err := n.Close(); err != nil {
			f.Error(err)
		}
	})
}

// client is one of node i.
func (f *fleet) client(i int) *memwrite.Client {
	f.Helper()
	url := f.nodes[i%len(f.nodes)].URL
	c, err := memwrite.New(memwrite.WithMemorySync(url, adder), memwrite.WithFishMem(url, writer))
	must(f, err)
	f.Cleanup(func() { _ = c.Close() })
	return c
}

// ended waits for all tasks and holds what is stored against the invariants.
func (f *fleet) ended() protocol.Snapshot {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), 60*time.Second)
	defer cancel()
	for {
		_, due, err := f.stores[0].NextDue(ctx)
		must(f, err)
		if !due {
			return check(f, f.stores[0])
		}
		must(f, sched.Sleep(ctx, sched.Real(), 20*time.Millisecond))
	}
}

func (f *fleet) count(k protocol.StepKind) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.steps[k]
}

// inferences is how often models were asked, and the most that was about one text.
func (f *fleet) inferences() (all, most int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.inferred {
		all += n
		most = max(most, n)
	}
	return all, most
}

// skewed is a machine whose clock is wrong.
type skewed struct {
	sched.Scheduler
	by time.Duration
}

func (s skewed) Now() time.Time { return s.Scheduler.Now().Add(s.by) }

// brisk is a repair that comes often, for tests without wake-ups.
var brisk = engine.Limits{RepairEvery: 50 * time.Millisecond}

func entriesOf(s protocol.Snapshot, k protocol.EntryKind) int {
	n := 0
	for _, e := range s.Entries {
		if e.Kind == k {
			n++
		}
	}
	return n
}
