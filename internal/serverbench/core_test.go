package serverbench

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/store/memory"
)

// core is the protocol's steps on a store, without runners or a wire.
type core struct {
	store *memory.Store
	w     protocol.Workspace
	now   time.Time
	lived int
}

// newCore makes a store in which so many inferred writes SUCCEEDED.
func newCore(t *testing.T, stored int) *core {
	t.Helper()
	c := &core{store: memory.New(1), w: protocol.Workspace{ID: workspace, Credits: -1, AddsPerMonth: -1},
		now: time.Now().Add(-time.Duration(stored+1) * time.Microsecond)}
	if err := c.store.PutWorkspace(t.Context(), c.w); err != nil {
		t.Fatal(err)
	}
	for range stored {
		if err := c.life(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// life is one inferred write from acceptance to its end.
func (c *core) life(ctx context.Context) error {
	c.lived++
	c.now = c.now.Add(time.Microsecond)
	now, id := c.now, "task_"+strconv.Itoa(c.lived)
	command := protocol.Command{Kind: protocol.Infer, Scope: protocol.Scope{UserID: "u" + id[len(id)-1:]}, Key: id, Text: "My team ships releases every Thursday."}
	if _, _, err := c.store.Accept(ctx, protocol.Accept(protocol.Proposal{Workspace: c.w, Command: &command, TaskID: id, MaxAttempts: 5, Now: now})); err != nil {
		return err
	}
	ts, err := c.store.Claim(ctx, now, 1, func(t protocol.Task) (protocol.WriteSet, bool) {
		ws, _, write := protocol.Claim(t, "runner", id, time.Minute, now)
		return ws, write
	})
	if err != nil {
		return err
	}
	t := ts[0]
	step := func(ws protocol.WriteSet, err error) error {
		if err == nil {
			t, err = c.store.Apply(ctx, ws)
		}
		return err
	}
	fact := []protocol.Fact{{Text: "Ships releases every Thursday", Type: "fact"}}
	if err := step(protocol.FreezePlan(t, fact, make([]protocol.Judgment, 1), 0, now)); err != nil {
		return err
	}
	if err := step(protocol.Commit(t, now)); err != nil {
		return err
	}
	if err := step(protocol.Projected(t, now), nil); err != nil {
		return err
	}
	return step(protocol.Finish(t, now))
}
