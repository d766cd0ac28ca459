package sqlite_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/sqlite"
)

// files are all that a database consists of.
func files(t *testing.T, s *sqlite.Store) []byte {
	t.Helper()
	var all []byte
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		raw, err := os.ReadFile(sqlite.Path(s) + suffix)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		all = append(all, raw...)
	}
	return all
}

// carry takes a task to its end with one fact.
func carry(t *testing.T, s *sqlite.Store, task protocol.Task, fact string, now time.Time) protocol.Task {
	t.Helper()
	apply := func(ws protocol.WriteSet, err error) {
		t.Helper()
		if err == nil {
			task, err = s.Apply(t.Context(), ws)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	apply(claimed(task), nil)
	apply(protocol.FreezePlan(task, []protocol.Fact{{Text: fact, Type: "fact", Key: "self/x"}}, make([]protocol.Judgment, 1), 0, now))
	apply(protocol.Commit(task, now))
	apply(protocol.Projected(task, now), nil)
	apply(protocol.Finish(task, now))
	return task
}

// The raw text of a write that succeeded, and what a forgotten record said, are
// in no file of the database once the log has been folded in. The texts are
// short and of many pages, and rows around them stay.
func TestRawInputLeavesEveryFile(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	if err := s.PutWorkspace(ctx, workspace()); err != nil {
		t.Fatal(err)
	}
	const secret, forgotten, kept = "xylophone-raw-input", "quixotic-forgotten-fact", "sturdy-kept-fact"
	for i := range 60 {
		a := proposal(fmt.Sprint("k", i))
		a.Task.Command.Text = strings.Repeat(fmt.Sprintf("%s %d, ", secret, i), 1+i*i)
		task, _, err := s.Accept(ctx, a)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 && !bytes.Contains(files(t, s), []byte(secret)) {
			t.Fatal("the text of a waiting write is not found: the search does not work")
		}
		fact := fmt.Sprint(kept, i)
		if i%2 == 0 {
			fact = strings.Repeat(fmt.Sprint(forgotten, i), 1+i)
		}
		task = carry(t, s, task, fact, noon)
		if i%2 == 0 {
			r, err := s.Record(ctx, "w", task.Result.Records[0].ID)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.PutRecord(ctx, r.Forget(noon)); err != nil {
				t.Fatal(err)
			}
		}
	}
	// A write that failed for good and cannot be redriven keeps nothing either.
	c := protocol.Command{Kind: protocol.MemorySyncAdd, Scope: protocol.Scope{Tenant: "default", EndUser: "sam"}, Text: secret}
	task, _, err := s.Accept(ctx, protocol.Accept(protocol.Proposal{Workspace: workspace(), Command: &c, TaskID: "task_failed", MaxAttempts: 5, Now: noon}))
	if err != nil {
		t.Fatal(err)
	}
	if task, err = s.Apply(ctx, claimed(task)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply(ctx, protocol.Failing(task, protocol.Fail(protocol.Rejected, "no"), workspace(), 0, noon)); err != nil {
		t.Fatal(err)
	}
	if err := s.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	all := files(t, s)
	for _, gone := range []string{secret, forgotten} {
		if n := bytes.Count(all, []byte(gone)); n != 0 {
			t.Errorf("%q is in the files %d times", gone, n)
		}
	}
	if n := bytes.Count(all, []byte(kept)); n < 30 {
		t.Errorf("what is kept is found %d times: the search does not work", n)
	}
	whole(t, s, 61)
}
