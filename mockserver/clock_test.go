package mockserver

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memwrite/memwrite-go/internal/sched"
)

func TestAdvanceEndsAWaitAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClock(sched.Real())
		start := time.Now()
		done := make(chan error, 1)
		go func() { done <- c.Wait(t.Context(), 30*24*time.Hour, nil) }()
		synctest.Wait()
		c.advance(30*24*time.Hour - time.Second)
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("a second too early: %v", err)
		default:
		}
		if err := <-done; !errors.Is(err, sched.ErrElapsed) {
			t.Fatalf("ended with %v", err)
		}
		if d := time.Since(start); d != time.Second {
			t.Fatalf("the rest took %v", d)
		}
	})
}

func TestFrozenClockHoldsWaitsUntilItIsMoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClock(sched.Real())
		c.freeze()
		c.freeze()
		at := c.Now()
		done := make(chan error, 1)
		go func() { done <- c.Wait(t.Context(), time.Minute, nil) }()
		time.Sleep(time.Hour)
		select {
		case err := <-done:
			t.Fatalf("a frozen clock ended a wait: %v", err)
		default:
		}
		c.advance(time.Minute)
		if err := <-done; !errors.Is(err, sched.ErrElapsed) {
			t.Fatalf("ended with %v", err)
		}
		if got := c.Now().Sub(at); got != time.Minute {
			t.Fatalf("the clock moved by %v", got)
		}
		c.thaw()
		time.Sleep(time.Second)
		if got := c.Now().Sub(at); got != time.Minute+time.Second {
			t.Fatalf("after the thaw it stands at %v", got)
		}
	})
}

func TestTimeoutFollowsTheClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClock(sched.Real())
		cause := errors.New("lease lost")
		ctx, cancel := c.WithTimeout(t.Context(), time.Hour, cause)
		defer cancel()
		c.advance(time.Hour)
		<-ctx.Done()
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) || !errors.Is(context.Cause(ctx), cause) {
			t.Fatalf("err %v, cause %v", ctx.Err(), context.Cause(ctx))
		}
	})
}

func TestWakeAndContextWin(t *testing.T) {
	t.Parallel()
	c := newClock(sched.Real())
	wake := make(chan struct{}, 1)
	wake <- struct{}{}
	if err := c.Wait(t.Context(), 0, wake); err != nil {
		t.Fatalf("a wake-up that was there gave %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wake <- struct{}{}
	if err := c.Wait(ctx, sched.Forever, wake); !errors.Is(err, context.Canceled) {
		t.Fatalf("a context that is done gave %v", err)
	}
}

// A reader that began before a freeze must not end with a time behind it.
func TestNobodySeesALaterTimeThanAFrozenClockShows(t *testing.T) {
	t.Parallel()
	for range 300 {
		c := newClock(sched.Real())
		latest := make(chan time.Time)
		var over atomic.Bool
		go func() {
			var last time.Time
			for !over.Load() {
				last = c.Now()
			}
			latest <- last
		}()
		c.Now()
		c.freeze()
		over.Store(true)
		if at, last := c.Now(), <-latest; last.After(at) {
			t.Fatalf("frozen at %s, %s was seen", at, last)
		}
	}
}
