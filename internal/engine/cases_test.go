package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
)

// The reports replayed here are about several nodes on one store. The store is
// the one in memory; those of the durable stores are replayed beside them.

// skewed is a node's clock that is wrong by so much.
type skewed struct {
	sched.Scheduler
	by time.Duration
}

func (s skewed) Now() time.Time { return s.Scheduler.Now().Add(s.by) }

// deaf is a notifier that hears nothing.
type deaf struct{ told atomic.Int64 }

func (d *deaf) Announce(string)                   { d.told.Add(1) }
func (d *deaf) Listen(func(string)) (stop func()) { return func() {} }

// beside is one more node on the store, made by change.
func (b *bundle) beside(change func(*engine.Config)) *engine.Engine {
	b.t.Helper()
	c := engine.Config{Store: b.store, Scheduler: sched.Real(), Comparer: compare{}, Faults: b.faults,
		OnError: func(err error) { b.t.Error(err) },
		Extractor: protocol.ExtractorFunc(func(context.Context, protocol.Input) ([]protocol.Fact, error) {
			b.inferences.Add(1)
			return []protocol.Fact{{Text: "Ships releases every Thursday", Type: "fact", Key: "team/ship"}}, nil
		})}
	change(&c)
	e := engine.New(c)
	e.Start()
	return e
}

// ended asserts what is true of a write that SUCCEEDED, whoever ran it.
func (b *bundle) whole(id string) protocol.Task {
	b.t.Helper()
	got := b.end(id, protocol.Succeeded)
	bal := b.balance(protocol.Credits)
	if n := b.records(); n != 1 || bal.Spent != 2 || bal.Reserved != 0 {
		b.t.Errorf("%d records, %+v", n, bal)
	}
	return got
}

// riverqueue/river#1105: a node that did not know a job's kind discarded it.
// Every node knows every kind here; the nearest is a node that has no model. It
// gives the task back to who has one.
func TestB02_ANodeWithoutAModelDiscardsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.engine.Close() // the one that ran it dies
		without := b.beside(func(c *engine.Config) {
			c.Extractor = protocol.ExtractorFunc(func(context.Context, protocol.Input) ([]protocol.Fact, error) {
				return nil, errors.New("no model here")
			})
		})
		s, err := without.Submit(t.Context(), "w", infer("k", note))
		if err != nil {
			t.Fatal(err)
		}
		b.engine = without
		synctest.Wait()
		if got, _ := without.Task(t.Context(), "w", s.Task.ID); got.State != protocol.Retrying || got.Attempts != 1 {
			t.Fatalf("%s at attempt %d", got.State, got.Attempts)
		}
		without.Close()
		with := b.beside(func(*engine.Config) {})
		defer with.Close()
		b.engine = with
		b.whole(s.Task.ID)
	})
}

// riverqueue/river#283: periodic jobs were emitted twice when the leader changed. The
// periodic work here is repair: both nodes come by in the same instant, and an
// expired lease is taken once.
func TestB04_TwoRepairsOfOneTickTakeATaskOnce(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.faults.arm(protocol.BeforeInference, 1, protocol.Fault{Act: protocol.Kill})
		s := b.submit(infer("k", note))
		synctest.Wait()
		for range 3 {
			other := b.beside(func(*engine.Config) {})
			defer other.Close()
		}
		if got := b.whole(s.Task.ID); got.Attempts != 2 || got.Transitions != 4 || b.inferences.Load() != 1 {
			t.Errorf("attempt %d, %d transitions, the model was asked %d times", got.Attempts, got.Transitions, b.inferences.Load())
		}
	})
}

// oban-bg/oban#1499: a notifier that was restarted heard nothing any more, and
// jobs stayed available for good. Here nothing is ever heard.
func TestB29_ADeafNotifierDelaysAndLosesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		first := b.engine
		wire := &deaf{}
		b.engine = b.beside(func(c *engine.Config) { c.Wakeups = wire })
		defer b.engine.Close()
		first.Close()
		accepts := engine.New(engine.Config{Store: b.store, Scheduler: sched.Real(), Comparer: compare{}, Wakeups: wire,
			Extractor: protocol.ExtractorFunc(func(context.Context, protocol.Input) ([]protocol.Fact, error) { return nil, nil })})
		defer accepts.Close() // it accepts, and is never started
		start := time.Now()
		s, err := accepts.Submit(t.Context(), "w", infer("k", note))
		if err != nil {
			t.Fatal(err)
		}
		b.whole(s.Task.ID)
		if took := time.Since(start); took > 10*time.Second || wire.told.Load() == 0 { // repair comes by every five
			t.Errorf("done after %v", took)
		}
	})
}

// johanhaleby/occurrent#659: a lease that one clock wrote was judged by another.
// This store judges by the node's own clock, so that a node that is half a
// minute ahead takes what is not over yet: the work is done twice then, and
// written once. (PostgreSQL judges by its own clock.)
func TestB57_SkewedClocksMakeNoTwoOwners(t *testing.T) {
	for _, by := range []time.Duration{30 * time.Second, -30 * time.Second} {
		t.Run(fmt.Sprint(by), func(t *testing.T) {
			bubble(t, func(t *testing.T, b *bundle) {
				b.engine.Close()
				slow := func(c *engine.Config) {
					c.Limits.Lease = 20 * time.Second
					c.Extractor = protocol.ExtractorFunc(func(context.Context, protocol.Input) ([]protocol.Fact, error) {
						b.inferences.Add(1)
						time.Sleep(12 * time.Second)
						return []protocol.Fact{{Text: "Ships releases every Thursday", Type: "fact", Key: "team/ship"}}, nil
					})
				}
				b.engine = b.beside(slow)
				defer b.engine.Close()
				other := b.beside(func(c *engine.Config) { slow(c); c.Scheduler = skewed{sched.Real(), by} })
				defer other.Close()
				b.whole(b.submit(infer("k", note)).Task.ID)
			})
		})
	}
}

// objectstack#14619: a job shorter than the skew of the clocks fired twice, since
// its lease was released at its end. What ended here is not due by any clock.
func TestB58_WhatEndedIsDueByNoClock(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		for _, by := range []time.Duration{time.Minute, -time.Minute} {
			other := b.beside(func(c *engine.Config) { c.Scheduler = skewed{sched.Real(), by} })
			defer other.Close()
		}
		s := b.submit(infer("k", note))
		got := b.whole(s.Task.ID)
		time.Sleep(5 * time.Minute)
		if again := b.whole(s.Task.ID); again.Version != got.Version {
			t.Errorf("a task that ended was written again: attempt %d after %d", again.Attempts, got.Attempts)
		}
	})
}
