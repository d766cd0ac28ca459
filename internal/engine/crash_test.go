package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
)

func TestRunnerKilledAtEachPoint(t *testing.T) {
	t.Parallel()
	for _, p := range []struct {
		at         protocol.Point
		inferences int64
	}{{protocol.BeforeInference, 1}, {protocol.AfterInference, 2}, {protocol.AfterPlan, 1}, {protocol.AfterCommit, 1}, {protocol.BeforeFinish, 1}} {
		t.Run(string(p.at), func(t *testing.T) {
			bubble(t, func(t *testing.T, b *bundle) {
				b.faults.arm(p.at, 1, protocol.Fault{Act: protocol.Kill})
				task := b.end(b.submit(infer("k", note)).Task.ID, protocol.Succeeded)
				if task.Attempts != 2 || b.records() != 1 || b.inferences.Load() != p.inferences || b.balance(protocol.Credits).Spent != 2 {
					t.Fatalf("attempts %d, records %d, inferences %d", task.Attempts, b.records(), b.inferences.Load())
				}
			})
		})
	}
}

func TestFiveCrashesAfterTheCommitEndSucceeded(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.faults.arm(protocol.AfterCommit, 5, protocol.Fault{Act: protocol.Kill})
		task := b.end(b.submit(infer("k", note)).Task.ID, protocol.Succeeded)
		if task.Attempts != 5 || b.records() != 1 || b.balance(protocol.Credits).Spent != 2 {
			t.Fatalf("attempts %d", task.Attempts)
		}
		time.Sleep(time.Minute) // of the bubble: the projection heals by itself
		if got, _ := b.engine.Task(t.Context(), "w", task.ID); got.Projection != protocol.ProjectionReady {
			t.Fatal(got.Projection)
		}
	})
}

func TestFiveCrashesBeforeInferenceEndFailedAndRefundOnce(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.faults.arm(protocol.BeforeInference, 5, protocol.Fault{Act: protocol.Kill})
		task := b.end(b.submit(infer("k", note)).Task.ID, protocol.Failed)
		if bal := b.balance(protocol.Credits); task.Attempts != 5 || bal.Available != 20 || bal.Spent != 0 {
			t.Fatalf("attempts %d, %+v", task.Attempts, bal)
		}
		if again := b.submit(infer("k", note)); !again.Replayed || again.Task.State != protocol.Failed {
			t.Fatalf("%+v", again.Task.State)
		}
		if err := b.engine.Grant(t.Context(), "w", protocol.Credits, -19); err != nil {
			t.Fatal(err)
		}
		if _, err := b.engine.Redrive(t.Context(), "w", task.ID); !errors.Is(err, protocol.ErrInsufficient) {
			t.Fatal(err)
		}
		if err := b.engine.Grant(t.Context(), "w", protocol.Credits, 1); err != nil {
			t.Fatal(err)
		}
		if _, err := b.engine.Redrive(t.Context(), "w", task.ID); err != nil {
			t.Fatal(err)
		}
		if task = b.end(task.ID, protocol.Succeeded); task.Run != 2 || task.Attempts != 1 {
			t.Fatalf("run %d, attempts %d", task.Run, task.Attempts)
		}
		if _, err := b.engine.Redrive(t.Context(), "w", task.ID); !errors.Is(err, protocol.ErrNotRetryable) {
			t.Fatal(err)
		}
	})
}

func TestZombieWritesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		release := make(chan struct{})
		b.faults.arm(protocol.AfterInference, 1, protocol.Fault{Act: protocol.Freeze, Release: release})
		id := b.submit(infer("k", note)).Task.ID
		task := b.end(id, protocol.Succeeded) // by a second runner, when the first one's lease is over
		close(release)
		synctest.Wait()
		after, _ := b.engine.Task(t.Context(), "w", id)
		if after.Version != task.Version || task.Attempts != 2 || b.records() != 1 {
			t.Fatalf("version %d, then %d", task.Version, after.Version)
		}
	})
}

func TestHeartbeatKeepsASlowRunner(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.extract = func(ctx context.Context, in protocol.Input) ([]protocol.Fact, error) {
			return []protocol.Fact{{Text: "slow"}}, sched.Sleep(ctx, sched.Real(), 55*time.Second) // nearly two leases
		}
		if task := b.end(b.submit(infer("k", note)).Task.ID, protocol.Succeeded); task.Attempts != 1 || b.inferences.Load() != 1 {
			t.Fatalf("%d attempts", task.Attempts)
		}
	})
}

func TestExtractorThatIgnoresItsContextIsLeftBehind(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		hang := make(chan struct{})
		defer close(hang)
		b.extract = func(context.Context, protocol.Input) ([]protocol.Fact, error) {
			if b.inferences.Load() == 1 {
				<-hang
			}
			return nil, nil
		}
		task := b.end(b.submit(infer("k", note)).Task.ID, protocol.Succeeded)
		if task.Attempts != 2 || task.Result.Outcome != protocol.NoMemory || b.balance(protocol.Credits).Spent != 2 {
			t.Fatalf("%d attempts, %s", task.Attempts, task.Result.Outcome)
		}
	})
}

func TestManyNodesTakeAnExpiredLeaseOnce(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.faults.arm(protocol.AfterPlan, 1, protocol.Fault{Act: protocol.Kill})
		for range 4 {
			n := b.node()
			defer n.Close()
			n.Start()
		}
		task := b.end(b.submit(infer("k", note)).Task.ID, protocol.Succeeded)
		if task.Attempts != 2 || b.inferences.Load() != 1 || b.records() != 1 {
			t.Fatalf("%d attempts", task.Attempts)
		}
	})
}

func TestANewEngineTakesUpWhatACrashLeft(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.extract = func(ctx context.Context, in protocol.Input) ([]protocol.Fact, error) {
			if b.inferences.Load() == 1 {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return []protocol.Fact{{Text: "x"}}, nil
		}
		id := b.submit(infer("k", note)).Task.ID
		synctest.Wait()
		b.engine.Close()
		if _, err := b.engine.Submit(t.Context(), "w", infer("k2", note)); !errors.Is(err, engine.ErrClosed) {
			t.Fatal(err)
		}
		b.engine = b.node()
		b.engine.Start()
		defer b.engine.Close()
		if task := b.end(id, protocol.Succeeded); task.Attempts != 2 {
			t.Fatalf("%d attempts", task.Attempts)
		}
	})
}
