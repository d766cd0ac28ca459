package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/internal/store/memory"
)

// stuck is a store with a task that is due and that no write fits.
type stuck struct {
	protocol.Store
	looks atomic.Int64
}

func (s *stuck) Claim(ctx context.Context, now time.Time, limit int, decide func(protocol.Task) (protocol.WriteSet, bool)) ([]protocol.Task, error) {
	s.looks.Add(1)
	ts, err := s.Store.Claim(ctx, now, limit, decide)
	return ts, errors.Join(err, protocol.ErrInvariant)
}

func (s *stuck) NextDue(context.Context) (time.Time, bool, error) { return time.Time{}, true, nil }

// The loop looks at what it cannot take again, less and less often, and takes
// what comes meanwhile.
func TestATaskThatNoWriteFitsMakesNobodySpin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &stuck{Store: memory.New(1)}
		e := engine.New(engine.Config{Store: s, Scheduler: sched.Real(), Comparer: compare{}, Extractor: protocol.ExtractorFunc(
			func(context.Context, protocol.Input) ([]protocol.Fact, error) { return nil, nil })})
		defer e.Close()
		if err := e.PutWorkspace(t.Context(), protocol.Workspace{ID: "w", Credits: -1}); err != nil {
			t.Fatal(err)
		}
		e.Start()
		time.Sleep(10 * time.Minute)
		if n := s.looks.Load(); n > 150 { // every five seconds, and a few in the beginning
			t.Errorf("%d looks in ten minutes", n)
		}
		got, err := e.Submit(t.Context(), "w", infer("k", note))
		if err != nil {
			t.Fatal(err)
		}
		if task, err := e.Await(t.Context(), "w", got.Task.ID, 10*time.Second, engine.Ended); err != nil || task.State != protocol.Succeeded {
			t.Errorf("%s, %v", task.State, err)
		}
	})
}

// deafening accepts a command and fails to say so.
type deafening struct {
	protocol.Store
	left atomic.Int64
}

func (d *deafening) Accept(ctx context.Context, a protocol.Acceptance) (protocol.Task, bool, error) {
	t, twin, err := d.Store.Accept(ctx, a)
	if err == nil && d.left.Add(-1) == 0 {
		return protocol.Task{}, false, errLost
	}
	return t, twin, err
}

// An acceptance whose answer was lost was made all the same. The task does not
// stand under its lease meanwhile: the repeat finds it done.
func TestAnAcceptanceWhoseAnswerIsLostRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &deafening{Store: memory.New(1)}
		d.left.Store(1)
		var asked atomic.Int64
		e := engine.New(engine.Config{Store: d, Scheduler: sched.Real(), Comparer: compare{}, Extractor: protocol.ExtractorFunc(
			func(context.Context, protocol.Input) ([]protocol.Fact, error) { asked.Add(1); return nil, nil })})
		defer e.Close()
		if err := e.PutWorkspace(t.Context(), protocol.Workspace{ID: "w", AddsPerMonth: 1}); err != nil {
			t.Fatal(err)
		}
		e.Start()
		if _, err := e.SubmitWith(t.Context(), "w", add(note, "note-1"), engine.Wish{Wait: patience}); !errors.Is(err, errLost) {
			t.Fatalf("got %v", err)
		}
		synctest.Wait()
		again, err := e.SubmitWith(t.Context(), "w", add(note, "note-1"), engine.Wish{Wait: patience})
		if err != nil || !again.Replayed || again.Task.State != protocol.Succeeded || again.Task.Attempts != 1 || asked.Load() != 1 {
			t.Errorf("%+v, asked %d times, %v", again, asked.Load(), err)
		}
		if err := e.Check(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Redriving a write in the moment its input goes either runs it or is refused,
// and never runs it without its input.
func TestRedriveMeetsTheEndOfRetention(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.extract = func(context.Context, protocol.Input) ([]protocol.Fact, error) {
			return nil, protocol.Fail(protocol.Rejected, "no")
		}
		s := b.submit(infer("k", note))
		b.end(s.Task.ID, protocol.Failed)
		b.extract = nil
		time.Sleep(protocol.FailedRetention - time.Nanosecond)
		done := make(chan error, 4)
		for range cap(done) {
			go func() {
				time.Sleep(time.Nanosecond)
				_, err := b.engine.Redrive(context.Background(), "w", s.Task.ID)
				done <- err
			}()
		}
		refused := 0
		for range cap(done) {
			if err := <-done; errors.Is(err, protocol.ErrNotRetryable) {
				refused++
			} else if err != nil {
				t.Error(err)
			}
		}
		got, err := b.engine.Await(t.Context(), "w", s.Task.ID, time.Minute, engine.Ended)
		if err != nil || (got.State == protocol.Failed) != (got.Command == nil && refused == cap(done)) {
			t.Errorf("%s, input kept: %v, %d refused, %v", got.State, got.Command != nil, refused, err)
		}
	})
}

// A clock that goes back delays what is due by its own measure and loses
// nothing.
func TestAClockThatGoesBackLosesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.engine.Close()
		clock := &jumping{Scheduler: sched.Real()}
		b.engine = b.beside(func(c *engine.Config) { c.Scheduler = clock })
		defer b.engine.Close()
		b.faults.arm(protocol.AfterPlan, 1, protocol.Fault{Act: protocol.Kill})
		first := b.submit(infer("k", note))
		synctest.Wait()
		clock.by.Store(int64(-time.Minute))
		second := b.submit(infer("l", note))
		if got := b.end(second.Task.ID, protocol.Succeeded); got.Attempts != 1 {
			t.Errorf("attempt %d", got.Attempts)
		}
		if got := b.end(first.Task.ID, protocol.Succeeded); got.Attempts != 2 || b.inferences.Load() != 2 {
			t.Errorf("attempt %d, the model was asked %d times", got.Attempts, b.inferences.Load())
		}
	})
}

// jumping is a clock that is moved while it runs.
type jumping struct {
	sched.Scheduler
	by atomic.Int64
}

func (j *jumping) Now() time.Time { return j.Scheduler.Now().Add(time.Duration(j.by.Load())) }
