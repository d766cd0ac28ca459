package sqlite_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/sqlite"
)

// A file of the first schema is brought to this one with all that is in it, and
// goes on from there.
func TestAFileOfTheFirstSchemaIsKept(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	now := filepath.Join(dir, "now.db")
	s, err := sqlite.Open(ctx, now, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	other := protocol.Workspace{ID: "other", AddsPerMonth: -1, Credits: 50}
	for _, w := range []protocol.Workspace{workspace(), other} {
		if err := s.PutWorkspace(ctx, w); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		task := accept(t, s, fmt.Sprint("k", i))
		c := protocol.Command{Kind: protocol.Infer, Scope: protocol.Scope{UserID: "kim"}, Key: fmt.Sprint("o", i), Text: "text"}
		if _, _, err := s.Accept(ctx, protocol.Accept(protocol.Proposal{Workspace: other, Command: &c, TaskID: fmt.Sprint("task_o", i), MaxAttempts: 5, Now: noon})); err != nil {
			t.Fatal(err)
		}
		if i < 3 {
			carry(t, s, task, fmt.Sprint("fact", i), noon)
		}
	}
	want, err := s.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	first := filepath.Join(dir, "first.db")
	db, err := sql.Open("sqlite", first)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	p, err := goose.NewProvider(goose.DialectSQLite3, db, os.DirFS("migrations"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.UpTo(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(ctx, `ATTACH ? AS now`, now); err != nil {
		t.Fatal(err)
	}
	// What the first schema has and this one does not.
	made := strings.NewReplacer(" task, run, ends,", ` nullif(task, 0), CASE task WHEN 0 THEN 0 ELSE run END, CASE part WHEN 1 THEN
			(SELECT o.seq FROM now.entry o WHERE o.workspace = entry.workspace AND o.task = entry.task AND o.run = entry.run AND o.part = 0) END,`,
		" number, id,", " number, task || '-' || number,")
	for table, columns := range map[string]string{
		"workspace":  "id, doc",
		"task":       "seq, id, workspace, kind, state, version, token, due, created, doc",
		"identity":   "hash, task, expires",
		"transition": "position, workspace, task, number, id, run, attempt, was, state, class, code, at",
		"record":     "seq, id, number, workspace, wire, task, created, expires, projected, forgotten, tenant, project, end_user, user_id, agent_id, run_id, topic, doc",
		"balance":    "workspace, unit, period, granted, available, reserved, spent",
		"entry":      "seq, id, workspace, unit, period, kind, amount, task, run, ends, at",
	} {
		if _, err := db.ExecContext(ctx, fmt.Sprintf(`INSERT INTO main.%[1]s (%[2]s) SELECT %[3]s FROM now.%[1]s`, table, columns, made.Replace(columns))); err != nil {
			t.Fatal(table, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	if s, err = sqlite.Open(ctx, first, sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	got, err := s.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	open, err := s.Task(ctx, "task_k4")
	if err != nil {
		t.Fatal(err)
	}
	carry(t, s, open, "later", noon.Add(time.Hour))
	accept(t, s, "new")
	if got, err = s.Snapshot(ctx); err != nil {
		t.Fatal(err)
	}
	if err := protocol.Check(got); err != nil || len(got.Tasks) != len(want.Tasks)+1 {
		t.Errorf("%d tasks, %v", len(got.Tasks), err)
	}
	if last := len(want.Transitions) - 1; got.Transitions[last+1].Position <= want.Transitions[last].Position {
		t.Errorf("position %d comes after %d", got.Transitions[last+1].Position, want.Transitions[last].Position)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	check, err := sql.Open("sqlite", first)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = check.Close() }()
	rows, err := check.QueryContext(ctx, `SELECT "table" FROM pragma_foreign_key_check`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		t.Error("a row names another that is not there")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}
