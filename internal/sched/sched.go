// Package sched is where the client's try loop and the server's loops get
// their time, their randomness and their goroutines from. Nothing else in this
// module starts a goroutine, reads a clock, arms a timer or draws a random
// number in code that decides something, so that one seed can replay all of it
// in a simulation.
package sched

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// ErrElapsed is what Wait returns when its time ran out before anything woke it.
var ErrElapsed = errors.New("sched: the wait elapsed")

// Forever is the duration of a Wait that only a wake-up or its context ends.
const Forever time.Duration = -1

// Scheduler is the source of time, randomness and concurrency.
//
// All methods are safe for concurrent use.
type Scheduler interface {
	// Now is the current time. It may stand still or jump forwards; durations
	// between two readings are only as good as the clock behind them.
	Now() time.Time

	// Go runs f concurrently.
	Go(f func())

	// Wait blocks until wake can be received from (or is closed), d has passed
	// or ctx is done, and says which: nil, ErrElapsed or context.Cause(ctx).
	// A context that is done already wins over everything else; d <= 0 other
	// than Forever elapses at once, yet a wake-up that is already there is
	// taken first. A nil wake never wakes.
	//
	// A wake channel must be buffered or closed by its sender: nobody may
	// block on sending to a waiter.
	Wait(ctx context.Context, d time.Duration, wake <-chan struct{}) error

	// WithTimeout is context.WithTimeoutCause on this scheduler's clock. Call
	// the returned function to release the timer; a second call does nothing.
	WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc)

	// Uint64 is a uniformly random number.
	Uint64() uint64
}

// Sleep waits for d or for the end of ctx, whose cause it then returns.
func Sleep(ctx context.Context, s Scheduler, d time.Duration) error {
	if err := s.Wait(ctx, max(d, 0), nil); !errors.Is(err, ErrElapsed) {
		return err
	}
	return nil
}

// Float64 is uniform in [0, 1).
func Float64(s Scheduler) float64 { return float64(s.Uint64()>>11) / (1 << 53) }

// Jitter is uniform in [0, d]: full jitter. d <= 0 gives 0.
func Jitter(s Scheduler, d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(Float64(s) * float64(d))
}

// Real is the machine's own clock, the runtime's goroutines and a random
// source seeded by the operating system. Inside a testing/synctest bubble it
// follows the bubble's clock.
func Real() Scheduler { return realScheduler{} }

type realScheduler struct{}

func (realScheduler) Now() time.Time { return time.Now() }
func (realScheduler) Go(f func())    { go f() }
func (realScheduler) Uint64() uint64 { return rand.Uint64() }

func (realScheduler) Wait(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case <-wake:
		return nil
	default:
	}
	if d == Forever {
		select {
		case <-wake:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if d <= 0 {
		return ErrElapsed
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-wake:
		return nil
	case <-timer.C:
		return ErrElapsed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (realScheduler) WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, cause)
}
