package sqlite_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/sqlite"
)

// turn is what a speaker said at noon, sent at a time.
func turn(id, text string, at time.Time) protocol.Acceptance {
	c := protocol.Command{Kind: protocol.Turn, Scope: protocol.Scope{Tenant: "w", EndUser: "sam"}, Speaker: "Sam", OccurredAt: "2026-08-05T12:00:00Z", Text: text}
	return protocol.Accept(protocol.Proposal{Workspace: workspace(), Command: &c, TaskID: "task_" + id, MaxAttempts: 5, Now: at})
}

// The identities of a group are taken together. Of two that are the same one is
// the other's twin, one whose window is over is taken over, one whose window is
// not over is not, and each is judged by its own time.
func TestTheIdentitiesOfAGroupAreTakenTogether(t *testing.T) {
	t.Parallel()
	const later = protocol.TurnWindow
	for _, c := range []struct {
		name   string
		at     time.Duration // when "old" comes again
		others time.Duration // when the others come
		same   bool          // two of them are the same
		twin   int
	}{
		{"all are new", later, later, false, 0},
		{"the times differ", later, 0, false, 0},
		{"two are the same", later, later, true, 1},
		{"one is held", later - time.Second, later, false, 1},
		{"both", later - time.Second, 0, true, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, ctx := open(t), t.Context()
			if err := s.PutWorkspace(ctx, workspace()); err != nil {
				t.Fatal(err)
			}
			if _, twin, err := s.Accept(ctx, turn("old", "old", noon)); err != nil || twin {
				t.Fatal(twin, err)
			}
			group := []protocol.Acceptance{turn("again", "old", noon.Add(c.at))}
			for i := range 9 {
				group = append(group, turn(fmt.Sprint("new", i), fmt.Sprint("new", i), noon.Add(c.others)))
			}
			if c.same {
				group = append(group, turn("same", "new3", noon.Add(c.others+time.Second)))
			}
			first := c.twin
			// Of the second group each identity is taken on its own, if the first
			// had a twin.
			for range 2 {
				hold := sqlite.Hold(s)
				var mu sync.Mutex
				var wg sync.WaitGroup
				twins := 0
				for _, a := range group {
					wg.Go(func() {
						got, twin, err := s.Accept(ctx, a)
						if err != nil || got.Identity.Hash != a.Task.Identity.Hash || (!twin && got.ID != a.Task.ID) {
							t.Errorf("%s: %+v, %v", a.Task.ID, got, err)
						}
						if held, err := s.TaskByIdentity(ctx, a.Task.Identity.Hash); err != nil || held.ID != got.ID {
							t.Errorf("%s: held by %s, %v, and answered with %s", a.Task.ID, held.ID, err, got.ID)
						}
						mu.Lock()
						defer mu.Unlock()
						if twin {
							twins++
						}
					})
				}
				hold(len(group))
				wg.Wait()
				if twins != c.twin {
					t.Errorf("%d twins, want %d", twins, c.twin)
				}
				c.twin = len(group) // all of them when they come once more
			}
			snap, err := s.Snapshot(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if want := 1 + len(group) - first; len(snap.Tasks) != want {
				t.Errorf("%d tasks, want %d", len(snap.Tasks), want)
			}
		})
	}
}
