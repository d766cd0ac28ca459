package vector_test

import (
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/extract"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/server/internal/pgtest"
)

// An index that cannot be written leaves a task that SUCCEEDED and a projection
// that is tried again, and one that cannot be read costs a search the time of
// comparing every record.
func TestAVectorTableThatIsGoneCostsOnlyTime(t *testing.T) {
	t.Parallel()
	url, s, sub := onPgvector(t)
	failures := make(chan error, 1000)
	e := engine.New(engine.Config{Store: s, Scheduler: sched.Real(), Extractor: extract.Rules{}, Comparer: extract.Comparer{}, Projector: sub.write,
		Limits:  engine.Limits{MaxAttempts: 2, RepairEvery: 20 * time.Millisecond, BackOff: protocol.BackOff{Base: 10 * time.Millisecond, Cap: 20 * time.Millisecond}, Lease: time.Second},
		OnError: func(err error) { failures <- err }})
	defer e.Close()
	if err := e.PutWorkspace(t.Context(), protocol.Workspace{ID: "w", AddsPerMonth: -1, Credits: -1}); err != nil {
		t.Fatal(err)
	}
	e.Start()
	task := func(key, text string, reached func(protocol.Task) bool) protocol.Task {
		t.Helper()
		sub, err := e.Submit(t.Context(), "w", protocol.Command{Kind: protocol.Infer, Key: key, Scope: sam, Text: text})
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, func() bool {
			if sub.Task, err = e.Task(t.Context(), "w", sub.Task.ID); err != nil {
				t.Fatal(err)
			}
			return reached(sub.Task)
		})
		return sub.Task
	}
	ended := func(t protocol.Task) bool { return t.State.Terminal() }
	ready := func(t protocol.Task) bool { return ended(t) && t.Projection == protocol.ProjectionReady }
	find := func(want int) {
		t.Helper()
		if got := tea(t, e); got != want {
			t.Errorf("%d found, want %d", got, want)
		}
	}
	task("1", "I like tea.", ready)
	find(1)
	pgtest.Exec(t, url, "alter table record_vectors_1 rename to hidden")
	if got := task("2", "I prefer green tea.", ended); got.State != protocol.Succeeded || got.Projection != protocol.ProjectionPending {
		t.Errorf("the task is %s with its projection %s", got.State, got.Projection)
	}
	find(1) // by comparing every record that search knows
	if len(failures) == 0 {
		t.Error("nobody was told that the index cannot be asked")
	}
	pgtest.Exec(t, url, "alter table hidden rename to record_vectors_1")
	task("2", "I prefer green tea.", ready)
	find(2)
	if n := counted(t, url); n != 2 {
		t.Errorf("%d vectors", n)
	}
}

// A forgotten record takes its vector with it in one transaction, whoever
// forgets it, and a vector that comes late is not kept.
func TestNoVectorOutlivesItsRecord(t *testing.T) {
	t.Parallel()
	url, s, sub := onPgvector(t)
	e, _, _ := sub.engines(t)
	var rs []protocol.Record
	for _, id := range verbatim(t, e, "k", "drinks tea", "likes cake") {
		r, err := s.Record(t.Context(), "w", id)
		if err != nil {
			t.Fatal(err)
		}
		rs = append(rs, r)
	}
	if err := sub.write.Project(t.Context(), rs); err != nil {
		t.Fatal(err)
	}
	if n := counted(t, url); n != 2 {
		t.Fatalf("%d vectors", n)
	}
	if err := s.PutRecord(t.Context(), rs[0].Forget(time.Now())); err != nil {
		t.Fatal(err)
	}
	if n := counted(t, url); n != 1 {
		t.Errorf("%d vectors after one record was forgotten", n)
	}
	if err := sub.write.Project(t.Context(), rs); err != nil { // as they were read before
		t.Fatal(err)
	}
	if n := counted(t, url); n != 1 {
		t.Errorf("%d vectors after a late projection", n)
	}
}

// Vectors are made anew at any time: lost ones, wrong ones and left over ones.
func TestRebuildingRepairsVectors(t *testing.T) {
	t.Parallel()
	url, s, sub := onPgvector(t)
	e, searcher, _ := sub.engines(t)
	verbatim(t, e, "k", "drinks tea", "likes tea", "green tea", "the")
	find := func(want int) bool { return tea(t, searcher) == want }
	eventually(t, func() bool { return find(3) })
	pgtest.Exec(t, url, `update record_vectors_1 set embedding = null`, `insert into record_vectors_1 values ('mem_none', null)`)
	if !find(0) {
		t.Error("the index is not asked")
	}
	pgtest.Exec(t, url, `delete from record_vectors_1 where id = (select min(id) from record_vectors_1 where id <> 'mem_none')`)
	if n, err := s.RebuildVectors(t.Context()); err != nil || n != 4 {
		t.Errorf("%d records, %v", n, err)
	}
	if !find(3) {
		t.Error("not repaired")
	}
	var rows int
	if pgtest.Read(t, url, &rows, `select count(*) from record_vectors_1`); rows != 4 {
		t.Errorf("%d rows", rows)
	}
}
