package sqlite_test

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/sqlite"
)

// Rows whose documents are damaged, at the begin of a page and a page of its own,
// are told of, and hold up none of those behind them.
func TestATaskThatCannotBeReadHoldsNoneUp(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	if err := s.PutWorkspace(ctx, workspace()); err != nil {
		t.Fatal(err)
	}
	const tasks, damaged = 60, 40
	for i := range tasks {
		accept(t, s, fmt.Sprintf("k%02d", i))
	}
	db, err := sql.Open("sqlite", sqlite.Path(s))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(ctx, `UPDATE task SET doc = '{"id"' WHERE id < ?`, fmt.Sprint("task_k", damaged)); err != nil {
		t.Fatal(err)
	}
	got, err := s.Claim(ctx, noon, tasks, func(task protocol.Task) (protocol.WriteSet, bool) {
		ws, _, write := protocol.Claim(task, "runner", "token_"+task.ID, time.Minute, noon)
		return ws, write
	})
	if !errors.Is(err, protocol.ErrInvariant) {
		t.Errorf("says %v", err)
	}
	if len(got) != tasks-damaged {
		t.Fatalf("%d tasks are claimed, want %d", len(got), tasks-damaged)
	}
	for _, task := range got {
		if is, err := s.Task(ctx, task.ID); err != nil || is.Lease.Token != "token_"+task.ID {
			t.Errorf("%s: held by %q, %v", task.ID, is.Lease.Token, err)
		}
	}
}
