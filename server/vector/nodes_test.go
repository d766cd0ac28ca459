package vector_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/memwrite/memwrite-go/internal/engine"
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

// onPgvector is a node that writes and searches.
func onPgvector(t *testing.T) (url string, s *postgres.Store, sub subject) {
	t.Helper()
	url = pgtest.Vectors(t)
	s = database(t, url)
	v := pgvector(t, s)
	return url, s, subject{store: s, write: v, search: v}
}

// verbatim writes texts as they are, and gives the records they made.
func verbatim(t *testing.T, e *engine.Engine, key string, texts ...string) (ids []string) {
	t.Helper()
	c := protocol.Command{Kind: protocol.Verbatim, Key: key, Scope: sam}
	for _, text := range texts {
		c.Messages = append(c.Messages, protocol.Message{Role: "user", Content: text})
	}
	got, err := e.Submit(t.Context(), "w", c)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range got.Task.Plan.Mutations {
		ids = append(ids, m.RecordID)
	}
	return ids
}

// tea is how many records of a user a search for tea finds.
func tea(t *testing.T, e *engine.Engine) int {
	t.Helper()
	got, err := e.Search(t.Context(), protocol.RecordQuery{Workspace: "w", Wire: protocol.FishMem, Scope: sam}, "tea", 10, nil)
	if err != nil {
		t.Fatal(err)
	}
	return len(got)
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
	e, searcher, _ := sub.engines(t)
	finds := func(want int) { // once they are projected
		t.Helper()
		eventually(t, func() bool { return tea(t, searcher) == want })
	}
	first := verbatim(t, e, "1", "drinks tea")[0]
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
	verbatim(t, e, "2", "likes tea")
	finds(2)
	if err := late.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	finds(3)
}
