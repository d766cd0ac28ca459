package sqlite_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/sqlite"
)

// In one group there are commands that are kept, a twin, a refusal for money
// and a stopped write. Each gets its own answer.
func TestARefusedWriteDoesNotTakeItsNeighboursWithIt(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	poor := protocol.Workspace{ID: "poor", AddsPerMonth: -1, Credits: 1}
	for _, w := range []protocol.Workspace{workspace(), poor} {
		if err := s.PutWorkspace(ctx, w); err != nil {
			t.Fatal(err)
		}
	}
	accept(t, s, "twin")

	hold := sqlite.Hold(s) // whoever comes now waits, and goes in one group
	type answer struct {
		twin bool
		err  error
	}
	const kept = 20
	answers := map[string]*answer{}
	var wg sync.WaitGroup
	send := func(name string, a protocol.Acceptance) {
		got := &answer{}
		answers[name] = got
		wg.Go(func() { _, got.twin, got.err = s.Accept(ctx, a) })
	}
	for i := range kept {
		send(fmt.Sprint("kept", i), proposal(fmt.Sprint("kept", i)))
		if i == kept/2 {
			send("twin", proposal("twin"))
			c := protocol.Command{Kind: protocol.Infer, Scope: protocol.Scope{UserID: "sam"}, Key: "x", Text: "raw"}
			send("poor", protocol.Accept(protocol.Proposal{Workspace: poor, Command: &c, TaskID: "task_poor", MaxAttempts: 5, Now: noon}))
			broken := proposal("broken")
			broken.Task.ID = "task_twin" // exists
			send("broken", broken)
			lost := proposal("lost")
			lost.Task.Workspace = "nobody"
			send("lost", lost)
		}
	}
	hold(kept + 4)
	wg.Wait()
	for name, got := range answers {
		var want error
		switch name {
		case "poor":
			want = protocol.ErrInsufficient
		case "broken":
			want = protocol.ErrInvariant
		case "lost":
			want = protocol.ErrNotFound
		}
		if !errors.Is(got.err, want) || got.twin != (name == "twin") {
			t.Errorf("%s: twin %v, %v, want %v", name, got.twin, got.err, want)
		}
	}
	snap, err := s.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := protocol.Check(snap); err != nil {
		t.Error(err)
	}
	if len(snap.Tasks) != kept+1 {
		t.Errorf("%d tasks, want %d", len(snap.Tasks), kept+1)
	}
}

// What one write left to the end of its group is refused when the next one looks:
// the refusal is the first one's, and the second is written.
func TestARefusalIsToldToWhoseItIs(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	if err := s.PutWorkspace(ctx, workspace()); err != nil {
		t.Fatal(err)
	}
	there := accept(t, s, "there")
	broken := proposal("broken")
	broken.Task.ID = there.ID
	hold := sqlite.Hold(s)
	var first, second error
	var wg sync.WaitGroup
	wg.Go(func() { _, _, first = s.Accept(ctx, broken) })
	sqlite.Queued(s, 1)
	wg.Go(func() { second = s.PutWorkspace(ctx, protocol.Workspace{ID: "other"}) })
	hold(2)
	wg.Wait()
	if !errors.Is(first, protocol.ErrInvariant) || second != nil {
		t.Errorf("the first is told %v, the second %v", first, second)
	}
	whole(t, s, 1)
}
