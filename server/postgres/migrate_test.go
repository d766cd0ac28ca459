package postgres_test

import (
	"database/sql"
	"fmt"
	"os"
	"reflect"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/internal/doc"
	"github.com/memwrite/memwrite-go/server/internal/pgtest"
)

// A database of the schema before tasks stood beside their documents is brought to
// this one with all that is in it, and goes on from there.
func TestADatabaseOfAFormerSchemaIsKept(t *testing.T) {
	t.Parallel()
	ctx, now, former := t.Context(), pgtest.URL(t), pgtest.URL(t)
	s, w := open(t, now), space("w", 100)
	must(t, s.PutWorkspace(ctx, w))
	apply := func(ws protocol.WriteSet, err error) protocol.Task {
		t.Helper()
		must(t, err)
		got, err := s.Apply(ctx, ws)
		must(t, err)
		return got
	}
	facts, judged := []protocol.Fact{{Text: "likes tea", Type: "fact", Key: "self/x"}}, make([]protocol.Judgment, 1)
	for i, until := range []protocol.State{protocol.Pending, protocol.Running, protocol.Retrying, protocol.Failed, protocol.Succeeded} {
		task := accept(t, s, w, name("k%d", i))
		if until == protocol.Pending {
			continue
		}
		claimed, _, _ := protocol.Claim(task, "runner", name("token%d", i), time.Minute, noon)
		task = apply(claimed, nil)
		switch until {
		case protocol.Retrying:
			apply(protocol.Failing(task, protocol.Fail(protocol.Infrastructure, "x"), w, time.Second, noon), nil)
		case protocol.Failed:
			apply(protocol.Failing(task, protocol.Fail(protocol.Rejected, "x"), w, time.Second, noon), nil)
		case protocol.Succeeded:
			task = apply(protocol.FreezePlan(task, facts, judged, 0, noon))
			task = apply(protocol.Commit(task, noon))
			apply(protocol.Finish(task, noon))
		}
	}
	want := check(t, s)
	must(t, s.Close())

	db, err := sql.Open("pgx", former)
	must(t, err)
	defer func() { _ = db.Close() }()
	p, err := goose.NewProvider(goose.DialectPostgres, db, os.DirFS("migrations"), goose.WithTableName("memwrite_migrations"), goose.WithDisableGlobalRegistry(true))
	must(t, err)
	_, err = p.UpTo(ctx, 4)
	must(t, err)
	// What the former schema has and this one does not: the whole task in its
	// document, and the id of a transition.
	for _, table := range []string{"workspaces", "histories", "tasks", "identities", "transitions", "balances", "entries", "records"} {
		rows := `to_jsonb(x)`
		if table == "transitions" {
			rows = `to_jsonb(x) || jsonb_build_object('id', x.task_id || '-' || x.number)`
		}
		var all []byte
		must(t, session(t, now).QueryRow(ctx, fmt.Sprintf(`select coalesce(jsonb_agg(%s), '[]') from %s x`, rows, table)).Scan(&all))
		_, err := db.ExecContext(ctx, fmt.Sprintf(`insert into %[1]s overriding system value select * from jsonb_populate_recordset(null::%[1]s, $1)`, table), string(all))
		must(t, err)
	}
	for _, table := range []string{"entries", "records"} {
		_, err = db.ExecContext(ctx, fmt.Sprintf(`select setval(pg_get_serial_sequence('%[1]s', 'seq'), (select max(seq) from %[1]s))`, table))
		must(t, err)
	}
	for i := range want.Tasks {
		raw, err := doc.OfTask(&want.Tasks[i])
		must(t, err)
		_, err = db.ExecContext(ctx, `update tasks set doc = $1 where id = $2`, raw, want.Tasks[i].ID)
		must(t, err)
	}

	s = open(t, former)
	if got := check(t, s); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for _, task := range claim(t, s, 10, "later", noon.Add(time.Hour)) {
		if task.State != protocol.Running {
			continue
		}
		task = apply(protocol.FreezePlan(task, facts, judged, 0, noon.Add(time.Hour)))
		task = apply(protocol.Commit(task, noon.Add(time.Hour)))
		apply(protocol.Finish(task, noon.Add(time.Hour)))
	}
	accept(t, s, w, "new")
	done := 0
	got := check(t, s)
	for i := range got.Tasks {
		if got.Tasks[i].State == protocol.Succeeded {
			done++
		}
	}
	if done != 4 || len(got.Tasks) != len(want.Tasks)+1 {
		t.Errorf("%d of %d tasks are done", done, len(got.Tasks))
	}
}
