package postgres_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/server/internal/pgtest"
	"github.com/memwrite/memwrite-go/server/postgres"
	"github.com/memwrite/memwrite-go/server/wakeup"
)

// 64 identical posts at one moment, spread over three nodes: one task, one
// inference, one reservation, and everybody is told of the same event.
func TestIdenticalPostsToManyNodesAreOneTask(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	f := newFleet(t, url, station{limits: brisk}, station{limits: brisk}, station{limits: brisk})
	clients := []*memwrite.Client{f.client(0), f.client(1), f.client(2)}
	var mu sync.Mutex
	events := map[string]int{}
	together(64, func(i int) {
		r, err := clients[i%3].AddAsync(t.Context(), memwrite.InferRequest{Key: memwrite.NewRef("note", "1"), Scope: memwrite.Scope{UserID: "sam"}, Content: "I like green tea"})
		if err != nil {
			t.Error(err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		events[r.EventID]++
	})
	snap := f.ended()
	all, _ := f.inferences()
	first := f.count(protocol.StepAccepted)
	if len(events) != 1 || f.count(protocol.StepReplayed) != 63 || first != 1 || len(snap.Tasks) != 1 || len(snap.Records) != 1 || all != 1 || entriesOf(snap, protocol.Reserve) != 1 || entriesOf(snap, protocol.Settle) != 1 {
		t.Errorf("%d events, %d were the first, %d tasks, %d records, %d inferences, %d reservations", len(events), first, len(snap.Tasks), len(snap.Records), all, entriesOf(snap, protocol.Reserve))
	}
}

// The same with adds, whose callers wait inline: those of other nodes than the
// one that runs the task are woken, for nobody looks by himself in this test.
func TestATwinOnAnotherNodeIsWoken(t *testing.T) {
	t.Parallel()
	for name, broker := range map[string]func(url string) func() (wakeup.Broker, error){
		"in process": func(string) func() (wakeup.Broker, error) {
			var h wakeup.Hub
			return func() (wakeup.Broker, error) { return h.Node(), nil }
		},
		"postgres": func(url string) func() (wakeup.Broker, error) {
			return func() (wakeup.Broker, error) { return wakeup.Postgres(url) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t)
			st := station{limits: engine.Limits{RepairEvery: time.Hour, Lease: time.Hour}, broker: broker(url), slow: 500 * time.Millisecond}
			f := newFleet(t, url, st, st, st)
			var mu sync.Mutex
			outcomes := map[memwrite.AddOutcome]int{}
			clients := []*memwrite.Client{f.client(0), f.client(1), f.client(2)}
			together(24, func(i int) {
				r, err := clients[i%3].Add(t.Context(), memwrite.AddRequest{Text: "I like green tea", EndUserID: "sam", Ref: memwrite.NewRef("note", "1")})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				outcomes[r.Outcome]++
			})
			all, _ := f.inferences()
			if snap := check(t, f.stores[0]); outcomes[memwrite.Stored]+outcomes[memwrite.AlreadyIngested] != 24 || len(snap.Tasks) != 1 || all != 1 || entriesOf(snap, protocol.Settle) != 1 {
				t.Errorf("outcomes %v, %d tasks, %d inferences", outcomes, len(snap.Tasks), all)
			}
		})
	}
}

// Without any wake-up between nodes everything still ends, and a waiting twin
// looks by himself.
func TestWithoutWakeupsOnlyTimeIsLost(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	st := station{limits: brisk, slow: 100 * time.Millisecond}
	f := newFleet(t, url, st, st, st)
	clients := []*memwrite.Client{f.client(0), f.client(1), f.client(2)}
	together(30, func(i int) {
		ref := memwrite.NewRef("note", name("%d", i/3))
		_, err := clients[i%3].Add(t.Context(), memwrite.AddRequest{Text: name("I like number %d best", i/3), EndUserID: name("user-%d", i/3), Ref: ref})
		if err != nil {
			t.Error(err)
		}
	})
	snap := f.ended()
	if all, most := f.inferences(); len(snap.Tasks) != 10 || len(snap.Records) != 10 || all != 10 || most != 1 {
		t.Errorf("%d tasks, %d records, %d inferences", len(snap.Tasks), len(snap.Records), all)
	}
}

// A lease that is over is taken by one of many that look at the same moment.
func TestB04_OneOfManyRepairsTakesAnExpiredLease(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	w := space("default", -1)
	stores := make([]*postgres.Store, 6)
	for i := range stores {
		stores[i] = open(t, url)
	}
	must(t, stores[0].PutWorkspace(t.Context(), w))
	now := noon
	const tasks = 20
	for i := range tasks {
		accept(t, stores[0], w, name("k%02d", i))
	}
	for round := 1; round <= 3; round++ {
		var mu sync.Mutex
		taken := map[string]int{}
		together(len(stores), func(i int) {
			for _, task := range claim(t, stores[i], tasks, name("token-%d-%d", round, i), now) {
				mu.Lock()
				taken[task.ID]++
				mu.Unlock()
				if task.Attempts != round {
					t.Errorf("%s is at attempt %d in round %d", task.ID, task.Attempts, round)
				}
			}
		})
		// Whom all passed over, because another was at it that gave up, is due still.
		for _, task := range claim(t, stores[0], tasks, name("rest-%d", round), now) {
			taken[task.ID]++
		}
		if len(taken) != tasks {
			t.Errorf("round %d: %d of %d were taken", round, len(taken), tasks)
		}
		for id, n := range taken {
			if n != 1 {
				t.Errorf("round %d: %s was taken %d times", round, id, n)
			}
		}
		now = now.Add(2 * time.Minute)
	}
	check(t, stores[0])
}

// A node that cannot do the work does not discard it: another does.
func TestB02_ANodeThatCannotDoesNotDiscard(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	limits := engine.Limits{RepairEvery: 20 * time.Millisecond, MaxAttempts: 200, BackOff: protocol.BackOff{Base: 10 * time.Millisecond, Cap: 10 * time.Millisecond}}
	unable := station{limits: limits, fails: protocol.Fail(protocol.Infrastructure, "there is no model here")}
	f := newFleet(t, url, unable)
	c := f.client(0)
	for i := range 5 {
		_, err := c.AddAsync(t.Context(), memwrite.InferRequest{Key: memwrite.NewRef("note", name("%d", i)), Scope: memwrite.Scope{UserID: "sam"}, Content: name("I like number %d best", i)})
		must(t, err)
	}
	for f.count(protocol.StepRetrying) < 5 {
		must(t, sched.Sleep(t.Context(), sched.Real(), 10*time.Millisecond))
	}
	f.open(station{limits: limits})
	snap := f.ended()
	for _, task := range snap.Tasks {
		if task.State != protocol.Succeeded {
			t.Errorf("%s is %s", task.ID, task.State)
		}
	}
	if len(snap.Records) != 5 || entriesOf(snap, protocol.Settle) != 5 {
		t.Errorf("%d records", len(snap.Records))
	}
}

// Of two that commit one task, the second is told that it lost, by the lease and
// not by an index.
func TestTheLoserOfACommitIsTold(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	one, two := open(t, url), open(t, url)
	w := space("w", -1)
	must(t, one.PutWorkspace(t.Context(), w))
	accept(t, one, w, "k")
	old := claim(t, one, 1, "t1", noon)[0]
	facts := []protocol.Fact{{Text: "likes tea", Type: "fact"}}
	ws, err := protocol.FreezePlan(old, facts, make([]protocol.Judgment, 1), 0, noon)
	must(t, err)
	old, err = one.Apply(t.Context(), ws)
	must(t, err)
	later := noon.Add(2 * time.Minute)
	held := claim(t, two, 1, "t2", later)[0]
	if held.Plan == nil || held.Plan.Hash != old.Plan.Hash {
		t.Fatal("the plan is another")
	}
	var wins, losses int
	var mu sync.Mutex
	together(2, func(i int) {
		store, task := one, old
		if i == 1 {
			store, task = two, held
		}
		ws, err := protocol.Commit(task, later)
		must(t, err)
		_, err = store.Apply(t.Context(), ws)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil && i == 1:
			wins++
		case errors.Is(err, protocol.ErrStale) && i == 0:
			losses++
		default:
			t.Errorf("runner %d: %v", i, err)
		}
	})
	if snap := check(t, one); wins != 1 || losses != 1 || len(snap.Records) != 1 {
		t.Errorf("%d won, %d lost, %d records", wins, losses, len(snap.Records))
	}
}
