package engine_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/protocol"
)

const patience = 25 * time.Second

// perform submits a write whose caller waits for it.
func (b *bundle) perform(ctx context.Context, c protocol.Command) engine.Submitted {
	b.t.Helper()
	s, err := b.engine.SubmitWith(ctx, "w", c, engine.Wish{Wait: patience})
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func TestAnAddIsDoneWhenItsCallerIsAnswered(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		s := b.perform(t.Context(), add(note, "note-1"))
		if s.Replayed || s.Task.State != protocol.Succeeded || len(s.Task.Result.Records) != 1 || b.inferences.Load() != 1 {
			t.Fatalf("%+v", s)
		}
		if again := b.perform(t.Context(), add(note, "note-1")); !again.Replayed || again.Task.ID != s.Task.ID {
			t.Fatalf("%+v", again)
		}
	})
}

// A caller who has waited long enough is answered, and the task goes on where
// it was: the model is not asked again.
func TestAnAddThatOutlastsItsCallerGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.extract = func(ctx context.Context, _ protocol.Input) ([]protocol.Fact, error) {
			time.Sleep(40 * time.Second)
			return []protocol.Fact{{Text: "Ships releases every Thursday", Type: "fact", Key: "team/ship"}}, nil
		}
		start := time.Now()
		s := b.perform(t.Context(), add(note, "note-1"))
		if waited := time.Since(start); waited != patience || s.Task.State != protocol.Running {
			t.Fatalf("answered after %v: %s", waited, s.Task.State)
		}
		got := b.end(s.Task.ID, protocol.Succeeded)
		if took := time.Since(start); took < 40*time.Second || took > 41*time.Second || got.Attempts != 1 || b.inferences.Load() != 1 {
			t.Fatalf("ended after %v at attempt %d, the model was asked %d times", took, got.Attempts, b.inferences.Load())
		}
	})
}

// The heartbeat keeps the lease also while the caller waits.
func TestAnInlineRunKeepsItsLease(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.extract = func(context.Context, protocol.Input) ([]protocol.Fact, error) {
			time.Sleep(55 * time.Second)
			return nil, nil
		}
		s, err := b.engine.SubmitWith(t.Context(), "w", add(note, "note-1"), engine.Wish{Wait: time.Hour})
		if err != nil || s.Task.State != protocol.Succeeded || s.Task.Attempts != 1 {
			t.Fatalf("%s at attempt %d, %v", s.Task.State, s.Task.Attempts, err)
		}
	})
}

func TestACallerWhoHangsUpCancelsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		ctx, hangUp := context.WithCancel(t.Context())
		b.extract = func(ctx context.Context, _ protocol.Input) ([]protocol.Fact, error) {
			hangUp()
			time.Sleep(time.Second)
			return []protocol.Fact{{Text: "Ships releases every Thursday", Type: "fact", Key: "team/ship"}}, ctx.Err()
		}
		if s := b.perform(ctx, add(note, "note-1")); s.Task.State != protocol.Succeeded {
			t.Fatalf("%s, %+v", s.Task.State, s.Task.Failure)
		}
	})
}

func TestAnInlineFailureIsTriedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.extract = func(context.Context, protocol.Input) ([]protocol.Fact, error) {
			if b.inferences.Load() == 1 {
				return nil, errors.New("away")
			}
			return nil, nil
		}
		s := b.perform(t.Context(), add(note, "note-1"))
		if s.Task.State != protocol.Retrying || s.Task.Failure.Class != protocol.Infrastructure {
			t.Fatalf("%s, %+v", s.Task.State, s.Task.Failure)
		}
		b.end(s.Task.ID, protocol.Succeeded)
	})
}

// Something that is armed while the caller waits strikes the task all the same,
// and not the caller.
func TestAFaultStrikesAnInlineRunBehindItsCaller(t *testing.T) {
	for _, point := range []protocol.Point{protocol.AfterInference, protocol.AfterPlan, protocol.AfterCommit, protocol.BeforeFinish} {
		t.Run(string(point), func(t *testing.T) {
			bubble(t, func(t *testing.T, b *bundle) {
				release := make(chan struct{})
				b.extract = func(context.Context, protocol.Input) ([]protocol.Fact, error) {
					b.faults.arm(point, 1, protocol.Fault{Act: protocol.Freeze, Release: release})
					return []protocol.Fact{{Text: "Ships releases every Thursday", Type: "fact", Key: "team/ship"}}, nil
				}
				s := b.perform(t.Context(), add(note, "note-1"))
				if s.Task.State != protocol.Running {
					t.Fatalf("the caller was held until %s", s.Task.State)
				}
				synctest.Wait()
				b.extract = nil
				close(release)
				if got := b.end(s.Task.ID, protocol.Succeeded); got.Attempts != 1 || b.inferences.Load() != 1 {
					t.Fatalf("attempt %d, the model was asked %d times", got.Attempts, b.inferences.Load())
				}
			})
		})
	}
}

// Close ends a caller's wait and waits for its run; the task is taken up when
// its lease is over.
func TestCloseEndsAnInlineRun(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.extract = func(ctx context.Context, _ protocol.Input) ([]protocol.Fact, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		first := b.engine
		var got engine.Submitted
		done := make(chan struct{})
		go func() {
			defer close(done)
			got, _ = first.SubmitWith(context.Background(), "w", add(note, "note-1"), engine.Wish{Wait: time.Hour})
		}()
		synctest.Wait()
		start := time.Now()
		first.Close()
		<-done
		if got.Task.State != protocol.Running || time.Since(start) > 0 {
			t.Fatalf("%s after %v", got.Task.State, time.Since(start))
		}
		b.extract = nil
		b.engine = b.node()
		defer b.engine.Close()
		b.engine.Start()
		if task := b.end(got.Task.ID, protocol.Succeeded); task.Attempts != 2 {
			t.Errorf("attempt %d", task.Attempts)
		}
	})
}

// Callers who wait take no more runners than there are, and nobody goes past a
// task that waits for one.
func TestInlineRunsLeaveTheOthersTheirTurn(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		var mu sync.Mutex
		running, most := 0, 0
		b.extract = func(context.Context, protocol.Input) ([]protocol.Fact, error) {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			running--
			mu.Unlock()
			return nil, nil
		}
		if err := b.engine.Grant(t.Context(), "w", protocol.Adds, 100); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 40 {
			wg.Go(func() {
				s := b.perform(t.Context(), add(note, ""))
				if _, err := b.engine.Await(t.Context(), "w", s.Task.ID, time.Minute, engine.Ended); err != nil {
					t.Error(err)
				}
			})
		}
		start := time.Now()
		wg.Wait()
		if took := time.Since(start); most != 8 || took > 6*time.Second {
			t.Errorf("%d ran at once, all were done after %v", most, took)
		}
	})
}

// A runner that stood still for longer than its lease asks no model: another
// has planned meanwhile.
func TestARunnerThatOverslepItsLeaseAsksNoModel(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		release := make(chan struct{})
		b.faults.arm(protocol.BeforeInference, 1, protocol.Fault{Act: protocol.Freeze, Release: release})
		s := b.submit(infer("k", note))
		got := b.end(s.Task.ID, protocol.Succeeded)
		close(release)
		synctest.Wait()
		if got.Attempts != 2 || b.inferences.Load() != 1 {
			t.Errorf("attempt %d, the model was asked %d times", got.Attempts, b.inferences.Load())
		}
	})
}
