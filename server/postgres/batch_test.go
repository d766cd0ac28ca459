package postgres_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/internal/pgtest"
)

// In one batch: commands that are new, twins of each other, another command
// under a key, a task id that exists, an account that is short, and a workspace
// that nobody made. Each is answered for itself.
func TestOneOfABatchDoesNotFailItsNeighbours(t *testing.T) {
	t.Parallel()
	s := open(t, pgtest.URL(t))
	rich, poor := space("rich", -1), space("poor", 6) // three writes
	must(t, s.PutWorkspace(t.Context(), rich))
	must(t, s.PutWorkspace(t.Context(), poor))
	taken := accept(t, s, rich, "taken")

	const each = 20
	var fresh, twins, conflicts, doubled, short, unknown atomic.Int64
	together(6*each, func(n int) {
		i := n / 6
		var a protocol.Acceptance
		switch n % 6 {
		case 0:
			a = proposal(rich, name("new%d", i), infer(name("new%d", i), "new"), noon)
		case 1:
			a = proposal(rich, name("same%d", i), infer("same", "the same"), noon)
		case 2:
			a = proposal(rich, name("other%d", i), infer("taken", "another command"), noon)
		case 3:
			a = proposal(rich, taken.ID, infer(name("dup%d", i), "an id that exists"), noon)
		case 4:
			a = proposal(poor, name("poor%d", i), infer(name("poor%d", i), "x"), noon)
		case 5:
			a = proposal(space("nobody", -1), name("nobody%d", i), infer(name("nobody%d", i), "x"), noon)
		}
		got, twin, err := s.Accept(t.Context(), a)
		switch {
		case errors.Is(err, protocol.ErrInvariant) && n%6 == 3:
			doubled.Add(1)
		case errors.Is(err, protocol.ErrInsufficient) && n%6 == 4:
			short.Add(1)
		case errors.Is(err, protocol.ErrNotFound) && n%6 == 5:
			unknown.Add(1)
		case err != nil:
			t.Errorf("case %d: %v", n%6, err)
		case twin && n%6 == 2 && errors.Is(protocol.JudgeTwin(a.Task, got), protocol.ErrConflict):
			conflicts.Add(1)
		case twin && n%6 == 1:
			twins.Add(1)
		case !twin:
			fresh.Add(1)
		default:
			t.Errorf("case %d: twin %v of %s", n%6, twin, got.ID)
		}
	})
	if fresh.Load() != each+1+3 || twins.Load() != each-1 || conflicts.Load() != each || doubled.Load() != each || short.Load() != each-3 || unknown.Load() != each {
		t.Errorf("%d new, %d twins, %d conflicts, %d doubled ids, %d short, %d unknown", fresh.Load(), twins.Load(), conflicts.Load(), doubled.Load(), short.Load(), unknown.Load())
	}
	snap := check(t, s)
	if len(snap.Tasks) != 1+each+1+3 || len(snap.Identities) != len(snap.Tasks) {
		t.Errorf("%d tasks, %d identities", len(snap.Tasks), len(snap.Identities))
	}
}

// Steps of many tasks in one batch: those without their lease, and those that an
// invariant stops, fail alone.
func TestOneStepOfABatchDoesNotFailItsNeighbours(t *testing.T) {
	t.Parallel()
	s := open(t, pgtest.URL(t))
	w := space("w", -1)
	must(t, s.PutWorkspace(t.Context(), w))
	const n = 30
	for i := range n {
		accept(t, s, w, name("k%02d", i))
	}
	ts := claim(t, s, n, "t1", noon)
	if len(ts) != n {
		t.Fatalf("claimed %d", len(ts))
	}
	var wrote atomic.Int64
	together(n, func(i int) {
		task := ts[i]
		facts := []protocol.Fact{{Text: "likes tea", Type: "fact", Key: "self/likes"}}
		ws, err := protocol.FreezePlan(task, facts, make([]protocol.Judgment, 1), 0, noon)
		if err != nil {
			t.Error(err)
		}
		want := error(nil)
		switch i % 3 {
		case 1:
			ws.If.Token, want = "another", protocol.ErrStale
		case 2:
			ws.Task.Lease, want = protocol.Lease{}, protocol.ErrInvariant
		}
		got, err := s.Apply(t.Context(), ws)
		if !errors.Is(err, want) {
			t.Errorf("%d: got %v, want %v", i%3, err, want)
		}
		if err != nil {
			return
		}
		wrote.Add(1)
		ws, _ = protocol.Commit(got, noon)
		if got, err = s.Apply(t.Context(), ws); err != nil {
			t.Error(err)
			return
		}
		ws, _ = protocol.Finish(got, noon)
		if _, err = s.Apply(t.Context(), ws); err != nil {
			t.Error(err)
		}
	})
	snap := check(t, s)
	if wrote.Load() != n/3 || len(snap.Records) != n/3 {
		t.Errorf("%d steps, %d records", wrote.Load(), len(snap.Records))
	}
}
