package memory_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/store/memory"
)

// BenchmarkLife is one inferred write from acceptance to its end, in a store
// that holds so many others already. Filling the larger one takes a minute and
// some gigabytes.
func BenchmarkLife(b *testing.B) {
	for _, stored := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprintf("stored=%d", stored), func(b *testing.B) {
			s := memory.New(1)
			w := protocol.Workspace{ID: "w", Credits: -1}
			if err := s.PutWorkspace(b.Context(), w); err != nil {
				b.Fatal(err)
			}
			now := time.Date(2026, 8, 5, 12, 0, 0, 0, time.UTC)
			for i := range stored {
				now = now.Add(time.Microsecond)
				if err := life(b.Context(), s, w, i, now); err != nil {
					b.Fatal(err)
				}
			}
			b.ResetTimer()
			for i := range b.N {
				now = now.Add(time.Microsecond)
				if err := life(b.Context(), s, w, stored+i, now); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func life(ctx context.Context, s *memory.Store, w protocol.Workspace, i int, now time.Time) error {
	name := fmt.Sprintf("task_%d", i)
	c := protocol.Command{Kind: protocol.Infer, Scope: protocol.Scope{UserID: "u" + name[len(name)-1:]}, Key: name, Text: "a text of some length"}
	if _, _, err := s.Accept(ctx, protocol.Accept(protocol.Proposal{Workspace: w, Command: &c, TaskID: name, MaxAttempts: 5, Now: now})); err != nil {
		return err
	}
	ts, err := s.Claim(ctx, now, 1, func(t protocol.Task) (protocol.WriteSet, bool) {
		ws, _, write := protocol.Claim(t, "r", name, time.Minute, now)
		return ws, write
	})
	if err != nil {
		return err
	}
	t := ts[0]
	step := func(ws protocol.WriteSet, err error) error {
		if err == nil {
			t, err = s.Apply(ctx, ws)
		}
		return err
	}
	if err := step(protocol.FreezePlan(t, []protocol.Fact{{Text: "fact", Type: "fact"}}, make([]protocol.Judgment, 1), 0, now)); err != nil {
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
