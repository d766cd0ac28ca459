package storebench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/extract"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/server/internal/pgtest"
	"github.com/memwrite/memwrite-go/server/postgres"
)

// Database gives a schema on a PostgreSQL, which is dropped when tb ends.
func Database(tb testing.TB) string { return pgtest.URL(tb) }

// Postgres opens a store on a schema.
func Postgres(ctx context.Context, url string, connections int) (*postgres.Store, error) {
	return postgres.Open(ctx, postgres.Options{URL: url, Connections: connections})
}

// Prepare makes n tasks whose plan is frozen and committed and whose attempt was
// lost then: all that is left is the claim and the finish.
func (b *Bench) Prepare(ctx context.Context, n int) error {
	if err := b.Accepts(ctx, 128, n); err != nil {
		return err
	}
	now := b.base.Add(time.Hour)
	for left := n; left > 0; {
		ts, err := b.store.Claim(ctx, now, min(left, 500), func(t protocol.Task) (protocol.WriteSet, bool) {
			if t.Committed {
				return protocol.WriteSet{}, false
			}
			ws, _, write := protocol.Claim(t, "bench", "prepare", time.Hour, now)
			return ws, write
		})
		if err != nil {
			return err
		}
		if len(ts) == 0 {
			return errors.New("nothing is left to prepare")
		}
		left -= len(ts)
		next := make(chan protocol.Task, len(ts))
		for _, t := range ts {
			next <- t
		}
		err = together(128, len(ts), func() error {
			t := <-next
			ws, err := protocol.FreezePlan(t, nil, nil, 0, now)
			if err != nil {
				return err
			}
			if t, err = b.store.Apply(ctx, ws); err != nil {
				return err
			}
			if ws, err = protocol.Commit(t, now); err != nil {
				return err
			}
			if t, err = b.store.Apply(ctx, ws); err != nil {
				return err
			}
			_, err = b.store.Apply(ctx, protocol.Failing(t, protocol.Fail(protocol.Infrastructure, "lost"), b.workspace, time.Millisecond, now))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Works claims n prepared tasks and finishes them: as many at once as there are
// runners, each finished by its own runner.
func (b *Bench) Works(ctx context.Context, runners, n int) error {
	now := b.base.Add(2 * time.Hour)
	free, tasks := make(chan struct{}, runners), make(chan protocol.Task, runners)
	var group sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for range runners {
		free <- struct{}{}
		group.Go(func() {
			for t := range tasks {
				ws, err := protocol.Finish(t, now)
				if err == nil {
					_, err = b.store.Apply(ctx, ws)
				}
				if err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
				}
				free <- struct{}{}
			}
		})
	}
	err := b.handOut(ctx, now, n, free, tasks)
	close(tasks)
	group.Wait()
	return errors.Join(err, failed)
}

// cooldown is how long runners that are free wait for others, to claim together;
// it is River's least.
const cooldown = 2 * time.Millisecond

// handOut claims n tasks for runners that are free.
func (b *Bench) handOut(ctx context.Context, now time.Time, n int, free <-chan struct{}, tasks chan<- protocol.Task) error {
	runners, idle := cap(free), 0
	for done := 0; done < n; {
		if idle == 0 {
			<-free
			idle++
		}
		few := time.After(cooldown)
		// A third of them, so that neither a claim nor a finish waits for the other.
		for enough := false; !enough && idle < min((runners+2)/3, n-done); {
			select {
			case <-free:
				idle++
			case <-few:
				enough = true
			}
		}
		ts, err := b.store.Claim(ctx, now, min(idle, n-done), func(t protocol.Task) (protocol.WriteSet, bool) {
			ws, _, write := protocol.Claim(t, "bench", "work", time.Hour, now)
			return ws, write
		})
		if err != nil {
			return err
		}
		if len(ts) == 0 {
			return errors.New("nothing is left to work")
		}
		for _, t := range ts {
			tasks <- t
		}
		done += len(ts)
		idle -= len(ts)
	}
	return nil
}

// CountWorked fails unless n tasks ended, each settled, with its transition and
// without its input.
func (b *Bench) CountWorked(ctx context.Context, n int) error {
	s, err := b.store.Snapshot(ctx)
	if err != nil {
		return err
	}
	ended, settled, told := 0, 0, 0
	for _, t := range s.Tasks {
		if t.State == protocol.Succeeded && t.Command == nil {
			ended++
		}
	}
	for _, e := range s.Entries {
		if e.Kind == protocol.Settle {
			settled++
		}
	}
	for _, tr := range s.Transitions {
		if tr.To == protocol.Succeeded {
			told++
		}
	}
	if ended != n || settled != n || told != n {
		return fmt.Errorf("%d finished: %d ended, %d settled, %d told", n, ended, settled, told)
	}
	return protocol.Check(s)
}

// Whole carries n writes through an engine with so many runners: claimed,
// extracted, planned, committed, projected, finished. It gives how long that
// took, and how long each was due before it was claimed, the shortest first.
func (b *Bench) Whole(ctx context.Context, runners, n int) (time.Duration, []time.Duration, error) {
	var mu sync.Mutex
	var waited []time.Duration
	ended := make(chan struct{}, n)
	w := protocol.Workspace{ID: "whole", AddsPerMonth: -1, Credits: -1}
	if err := b.store.PutWorkspace(ctx, w); err != nil {
		return 0, nil, err
	}
	clock := sched.Real()
	if c, ok := b.store.(interface{ Clock() sched.Scheduler }); ok {
		clock = c.Clock()
	}
	e := engine.New(engine.Config{Store: b.store, Scheduler: clock, Comparer: extract.Comparer{}, Limits: engine.Limits{Runners: runners},
		Extractor: protocol.ExtractorFunc(func(context.Context, protocol.Input) ([]protocol.Fact, error) {
			return []protocol.Fact{{Text: "A fact", Type: "fact"}}, nil
		}),
		Observe: func(s protocol.Step) {
			mu.Lock()
			defer mu.Unlock()
			switch s.Kind {
			case protocol.StepClaimed:
				waited = append(waited, s.Waited)
			case protocol.StepSucceeded:
				ended <- struct{}{}
			}
		}})
	defer e.Close()
	e.Start()
	start := time.Now()
	err := together(16, n, func() error {
		i := b.last.Add(1)
		_, err := e.Submit(ctx, w.ID, protocol.Command{Kind: protocol.Infer, Scope: protocol.Scope{UserID: fmt.Sprint("user-", i%1000)}, Key: fmt.Sprint("whole-", i), Text: Text})
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	for range n {
		select {
		case <-ended:
		case <-ctx.Done():
			return 0, nil, context.Cause(ctx)
		}
	}
	took := time.Since(start)
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(waited)
	return took, waited, nil
}
