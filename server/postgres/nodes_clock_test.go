package postgres_test

import (
	"testing"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/server/internal/pgtest"
	"github.com/memwrite/memwrite-go/server/postgres"
)

// apart is three nodes whose clocks are a minute apart, and a lease of 20 s.
func apart(ownClock bool, slow time.Duration) []station {
	limits := engine.Limits{Lease: 20 * time.Second, RepairEvery: 20 * time.Millisecond, MaxAttempts: 500, Runners: 4}
	var out []station
	for _, by := range []time.Duration{-30 * time.Second, 0, 30 * time.Second} {
		out = append(out, station{clock: skewed{sched.Real(), by}, ownClock: ownClock, limits: limits, slow: slow})
	}
	return out
}

func writeTo(t *testing.T, f *fleet, n int) {
	t.Helper()
	clients := []*memwrite.Client{f.client(0), f.client(1), f.client(2)}
	together(n, func(i int) {
		ref := memwrite.NewRef("note", name("%d", i))
		if _, err := clients[i%3].AddAsync(t.Context(), memwrite.InferRequest{Key: ref, Scope: memwrite.Scope{UserID: "sam"}, Content: name("I like number %d best", i)}); err != nil {
			t.Error(err)
		}
	})
}

// Leases that one node writes are judged by another whose clock is 30 or 60
// seconds off: nobody takes a task from its owner, nobody writes in vain.
func TestB57_NodesWithSkewedClocksHaveOneOwnerATask(t *testing.T) {
	t.Parallel()
	f := newFleet(t, pgtest.URL(t), apart(false, 700*time.Millisecond)...)
	writeTo(t, f, 24)
	snap := f.ended()
	for _, task := range snap.Tasks {
		if task.State != protocol.Succeeded || task.Attempts != 1 {
			t.Errorf("%s is %s at attempt %d", task.ID, task.State, task.Attempts)
		}
	}
	if all, most := f.inferences(); f.count(protocol.StepReclaimed) != 0 || f.count(protocol.StepFenced) != 0 || all != 24 || most != 1 {
		t.Errorf("%d reclaimed, %d fenced, %d inferences", f.count(protocol.StepReclaimed), f.count(protocol.StepFenced), all)
	}
}

// The same nodes judging time by themselves: tasks are taken from owners that
// are at work, which shows that the test above can fail. Even then a runner
// without the lease writes nothing.
func TestNodesThatTrustTheirOwnClocksRobEachOther(t *testing.T) {
	t.Parallel()
	f := newFleet(t, pgtest.URL(t), apart(true, 700*time.Millisecond)...)
	writeTo(t, f, 12)
	for f.count(protocol.StepReclaimed) == 0 {
		must(t, sched.Sleep(t.Context(), sched.Real(), 10*time.Millisecond))
	}
	snap := check(t, f.stores[0])
	settled := map[string]int{}
	for _, e := range snap.Entries {
		if e.Kind == protocol.Settle {
			settled[e.TaskID]++
		}
	}
	for id, n := range settled {
		if n > 1 {
			t.Errorf("%s was settled %d times", id, n)
		}
	}
}

// A task that is over long before the clocks' difference runs once.
func TestB58_AFastTaskOnSkewedNodesRunsOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t, pgtest.URL(t), apart(false, 0)...)
	writeTo(t, f, 60)
	snap := f.ended()
	if all, most := f.inferences(); len(snap.Tasks) != 60 || all != 60 || most != 1 || entriesOf(snap, protocol.Settle) != 60 {
		t.Errorf("%d tasks, %d inferences, at most %d of one", len(snap.Tasks), all, most)
	}
}

// A node that has counted wrong since it last read the clock takes nothing that
// the database does not call due.
func TestANodeThatIsAheadTakesNothing(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, err := postgres.Open(t.Context(), postgres.Options{URL: url, Connections: 2})
	must(t, err)
	defer s.Close()
	w := space("w", -1)
	must(t, s.PutWorkspace(t.Context(), w))
	now := s.Clock().Now()
	if off := time.Until(now).Abs(); off > 5*time.Second {
		t.Errorf("the database on this machine is %v off", off)
	}
	_, _, err = s.Accept(t.Context(), proposal(w, "task_a", infer("a", "x"), now))
	must(t, err)
	if got := claim(t, s, 1, "t1", now); len(got) != 1 {
		t.Fatalf("claimed %d", len(got))
	}
	if got := claim(t, s, 1, "t2", now.Add(time.Hour)); len(got) != 0 {
		t.Error("a node that is an hour ahead took a lease that is not over")
	}
}
