package vector_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/extract"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/server/internal/pgtest"
	"github.com/memwrite/memwrite-go/server/postgres"
	"github.com/memwrite/memwrite-go/server/vector"
)

// database is one node's store.
func database(t *testing.T, url string) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), postgres.Options{URL: url, Connections: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func follow(t *testing.T, s *postgres.Store) *vector.Followed {
	t.Helper()
	if err := s.Follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	x, err := vector.Follow(t.Context(), s, s.Clock(), func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Close)
	return x
}

func pgvector(t *testing.T, s *postgres.Store) *postgres.Vectors {
	t.Helper()
	v, err := s.Vectors(t.Context(), func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v
}

// counted is how many vectors a database has.
func counted(t *testing.T, url string) (n int) {
	t.Helper()
	pgtest.Read(t, url, &n, `select count(embedding) from record_vectors_1`)
	return n
}

// eventually waits for what happens soon.
func eventually(t *testing.T, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !done() {
		if err := sched.Sleep(ctx, sched.Real(), 5*time.Millisecond); err != nil {
			t.Fatal("it does not happen")
		}
	}
}

// What another node began before and commits after is found: changes are read in
// the order in which they end.
func TestALateCommitIsNotPassedOver(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	a, b := database(t, url), database(t, url)
	sub := subject{store: a, write: follow(t, a), search: follow(t, b)}
	e, searcher := sub.engines(t)
	write := func(key, text string) string {
		t.Helper()
		c := protocol.Command{Kind: protocol.Verbatim, Key: key, Scope: sam, Messages: []protocol.Message{{Role: "user", Content: text}}}
		got, err := e.Submit(t.Context(), "w", c)
		if err != nil {
			t.Fatal(err)
		}
		return got.Task.Plan.Mutations[0].RecordID
	}
	finds := func(want int) {
		t.Helper()
		eventually(t, func() bool { // until it is projected
			got, err := searcher.Search(t.Context(), protocol.RecordQuery{Workspace: "w", Wire: protocol.FishMem, Scope: sam}, "tea", 10, nil)
			if err != nil {
				t.Fatal(err)
			}
			return len(got) == want
		})
	}
	first := write("1", "drinks tea")
	finds(1)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	late, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = late.Exec(t.Context(), `insert into records (workspace, id, number, wire, task_id, tenant, project, end_user, user_id, agent_id, run_id, type, key, created_at, expires_at, projected, forgotten, doc)
		select workspace, 'mem_late', number, wire, task_id, tenant, project, end_user, user_id, agent_id, run_id, type, key, created_at, expires_at, true, forgotten,
		convert_to(replace(convert_from(doc, 'UTF8'), id, 'mem_late'), 'UTF8') from records where id = $1`, first)
	if err != nil {
		t.Fatal(err)
	}
	write("2", "likes tea")
	finds(2)
	if err := late.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	finds(3)
}

// An index that cannot be written leaves a task that SUCCEEDED and a projection
// that is tried again, and one that cannot be read costs a search the time of
// comparing every record.
func TestAVectorTableThatIsGoneCostsOnlyTime(t *testing.T) {
	t.Parallel()
	url := pgtest.Vectors(t)
	s := database(t, url)
	v := pgvector(t, s)
	failures := make(chan error, 1000)
	e := engine.New(engine.Config{Store: s, Scheduler: sched.Real(), Extractor: extract.Rules{}, Comparer: extract.Comparer{}, Projector: v,
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
		got, err := e.Search(t.Context(), protocol.RecordQuery{Workspace: "w", Wire: protocol.FishMem, Scope: sam}, "tea", 10, nil)
		if err != nil || len(got) != want {
			t.Errorf("%d found, %v", len(got), err)
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
	url := pgtest.Vectors(t)
	s := database(t, url)
	v := pgvector(t, s)
	sub := subject{store: s, write: v, search: v}
	e, _ := sub.engines(t)
	c := protocol.Command{Kind: protocol.Verbatim, Key: "k", Scope: sam, Messages: []protocol.Message{{Role: "user", Content: "drinks tea"}, {Role: "user", Content: "likes cake"}}}
	got, err := e.Submit(t.Context(), "w", c)
	if err != nil {
		t.Fatal(err)
	}
	var rs []protocol.Record
	for _, m := range got.Task.Plan.Mutations {
		r, err := s.Record(t.Context(), "w", m.RecordID)
		if err != nil {
			t.Fatal(err)
		}
		rs = append(rs, r)
	}
	if err := v.Project(t.Context(), rs); err != nil {
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
	if err := v.Project(t.Context(), rs); err != nil { // as they were read before
		t.Fatal(err)
	}
	if n := counted(t, url); n != 1 {
		t.Errorf("%d vectors after a late projection", n)
	}
}

// Vectors are made anew at any time: lost ones, wrong ones and left over ones.
func TestRebuildingRepairsVectors(t *testing.T) {
	t.Parallel()
	url := pgtest.Vectors(t)
	s := database(t, url)
	v := pgvector(t, s)
	sub := subject{store: s, write: v, search: v}
	e, searcher := sub.engines(t)
	for i, text := range []string{"drinks tea", "likes tea", "green tea", "the"} {
		c := protocol.Command{Kind: protocol.Verbatim, Key: fmt.Sprint(i), Scope: sam, Messages: []protocol.Message{{Role: "user", Content: text}}}
		if _, err := e.Submit(t.Context(), "w", c); err != nil {
			t.Fatal(err)
		}
	}
	find := func(want int) bool {
		got, err := searcher.Search(t.Context(), protocol.RecordQuery{Workspace: "w", Wire: protocol.FishMem, Scope: sam}, "tea", 10, nil)
		if err != nil {
			t.Fatal(err)
		}
		return len(got) == want
	}
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
