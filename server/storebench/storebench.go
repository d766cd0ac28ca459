// Package storebench makes the writes by which a store is measured. Each is the
// full transaction of the protocol; Count tells that it was.
package storebench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// Bench is a store with one workspace.
type Bench struct {
	store     protocol.Store
	workspace protocol.Workspace
	base      time.Time
	last      atomic.Int64
}

// New makes the workspace.
func New(ctx context.Context, s protocol.Store) (*Bench, error) {
	b := &Bench{store: s, workspace: protocol.Workspace{ID: "bench", AddsPerMonth: -1, Credits: -1}, base: time.Date(2026, 8, 5, 12, 0, 0, 0, time.UTC)}
	return b, s.PutWorkspace(ctx, b.workspace)
}

// Text is of the size of a note.
const Text = "The finance team wants every report on the second working day of the month, in one file, with the figures of the year before beside it."

// Accepts accepts n new inferred writes from so many callers at once.
func (b *Bench) Accepts(ctx context.Context, callers, n int) error {
	return together(callers, n, func() error {
		i := b.last.Add(1)
		c := protocol.Command{Kind: protocol.Infer, Scope: protocol.Scope{UserID: fmt.Sprint("user-", i%1000)}, Key: fmt.Sprint("note-", i), Text: Text}
		now := b.base.Add(time.Duration(i) * time.Microsecond)
		// The time and then what is random, as ids are in use.
		id := fmt.Sprintf("task_%014x%018x", now.UnixMicro(), uint64(i)*0x9e3779b97f4a7c15)
		_, twin, err := b.store.Accept(ctx, protocol.Accept(protocol.Proposal{Workspace: b.workspace, Command: &c, TaskID: id, MaxAttempts: 5, Now: now}))
		if twin {
			err = errors.New("a new command has a twin")
		}
		return err
	})
}

// Claims claims n due tasks, one at a time.
func (b *Bench) Claims(ctx context.Context, n int) error {
	now := b.base.Add(time.Hour)
	for range n {
		ts, err := b.store.Claim(ctx, now, 1, func(t protocol.Task) (protocol.WriteSet, bool) {
			ws, _, write := protocol.Claim(t, "bench", "token", time.Hour, now)
			return ws, write
		})
		if err != nil {
			return err
		}
		if len(ts) != 1 {
			return errors.New("nothing is left to claim")
		}
	}
	return nil
}

// Accepted is how many commands were accepted so far.
func (b *Bench) Accepted() int { return int(b.last.Load()) }

// Count fails unless each accepted command has its task, its identity, its
// reservation and its first transition. It reads everything.
func (b *Bench) Count(ctx context.Context) error {
	s, err := b.store.Snapshot(ctx)
	if err != nil {
		return err
	}
	reserved, first := 0, 0
	for _, e := range s.Entries {
		if e.Kind == protocol.Reserve {
			reserved++
		}
	}
	for _, tr := range s.Transitions {
		if tr.Number == 1 {
			first++
		}
	}
	n := b.Accepted()
	if len(s.Tasks) != n || len(s.Identities) != n || reserved != n || first != n {
		return fmt.Errorf("%d accepts left %d tasks, %d identities, %d reservations and %d first transitions", n, len(s.Tasks), len(s.Identities), reserved, first)
	}
	return nil
}

// together runs f n times in all, from so many callers at once.
func together(callers, n int, f func() error) error {
	var left atomic.Int64
	left.Store(int64(n))
	errs := make([]error, callers)
	var group sync.WaitGroup
	for c := range callers {
		group.Go(func() {
			for left.Add(-1) >= 0 && errs[c] == nil {
				errs[c] = f()
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// Together is for what is compared with a store: n calls of f from so many
// callers at once.
func Together(callers, n int, f func() error) error { return together(callers, n, f) }

// Side is one of those that are compared, with how many of its operations one
// round makes.
type Side struct {
	N  int
	Do func(n int) error
}

// Best interleaves rounds of all sides and gives, for each, the shortest time
// of one of its operations.
func Best(rounds int, sides ...Side) ([]time.Duration, error) {
	best := make([]time.Duration, len(sides))
	for range rounds {
		for i, s := range sides {
			start := time.Now()
			if err := s.Do(s.N); err != nil {
				return nil, err
			}
			if took := time.Since(start) / time.Duration(s.N); best[i] == 0 || took < best[i] {
				best[i] = took
			}
		}
	}
	return best, nil
}

// Figure prints a measured value beside its target.
func Figure(name string, value float64, op string, target float64, comment string) {
	word := "short"
	if (op == ">=" && value >= target) || (op == "<=" && value <= target) {
		word = "ok"
	}
	fmt.Printf("figure %s %.4g %s %g %s%s\n", name, value, op, target, word, comment)
}

// Note prints a measured value without a target.
func Note(name string, value float64, comment string) {
	fmt.Printf("figure %s %.4g - - ok%s\n", name, value, comment)
}
