package memory_test

import (
	"errors"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/store/memory"
)

// A row that no write fits any more must not hold up those that are due behind
// it: they would wait for ever.
func TestARowThatCannotBeWrittenHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	ctx, now := t.Context(), time.Date(2026, 8, 5, 12, 0, 0, 0, time.UTC)
	store := memory.New(1)
	w := protocol.Workspace{ID: "w", AddsPerMonth: -1, Credits: -1}
	if err := store.PutWorkspace(ctx, w); err != nil {
		t.Fatal(err)
	}
	for i, id := range []string{"poisoned", "well"} {
		c := protocol.Command{Kind: protocol.Infer, Key: id, Scope: protocol.Scope{UserID: "sam"}, Text: "I like tea"}
		a := protocol.Accept(protocol.Proposal{Workspace: w, Command: &c, TaskID: id, MaxAttempts: 5, Now: now.Add(time.Duration(i))})
		if _, _, err := store.Accept(ctx, a); err != nil {
			t.Fatal(err)
		}
	}
	got, err := store.Claim(ctx, now.Add(time.Second), 1, func(task protocol.Task) (protocol.WriteSet, bool) {
		ws, _, write := protocol.Claim(task, "runner", "token", time.Minute, now.Add(time.Second))
		if task.ID == "poisoned" {
			ws.Task.Lease = protocol.Lease{} // RUNNING without a lease is no state
		}
		return ws, write
	})
	if !errors.Is(err, protocol.ErrInvariant) {
		t.Errorf("the stopped write was kept quiet: %v", err)
	}
	if len(got) != 1 || got[0].ID != "well" {
		t.Errorf("claimed %v, want the row behind it", got)
	}
}
