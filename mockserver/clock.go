package mockserver

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/memwrite/memwrite-go/internal/sched"
)

// clock is the machine's clock plus an offset that only grows. Everything of
// the server that waits or measures reads it: leases, back-off, the 30 days of
// a turn, rate windows and long polls. Moving it wakes whoever waits on it.
type clock struct {
	base sched.Scheduler

	mu  sync.Mutex              // of those who change it
	set atomic.Pointer[setting] // nil while it is being changed
}

// setting is how the clock runs, until the next jump, freeze or thaw. It is read
// many times a request, so it is never changed, only replaced.
type setting struct {
	offset  time.Duration
	frozen  bool
	stopped time.Time     // what Now says while frozen
	moved   chan struct{} // closed when this is no longer how it runs
}

func newClock(base sched.Scheduler) *clock {
	c := &clock{base: base}
	c.set.Store(&setting{moved: make(chan struct{})})
	return c
}

var _ sched.Scheduler = (*clock)(nil)

// Now is the time on this clock.
func (c *clock) Now() time.Time {
	now, _ := c.read()
	return now
}

// read is the time by a setting that held when the time was taken: whoever sees
// the clock frozen at a moment has never seen a later one.
func (c *clock) read() (time.Time, *setting) {
	if s := c.set.Load(); s != nil {
		if now := c.at(s); c.set.Load() == s {
			return now, s
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.set.Load()
	return c.at(s), s
}

func (c *clock) at(s *setting) time.Time {
	if s.frozen {
		return s.stopped
	}
	if s.offset == 0 {
		return c.base.Now()
	}
	return c.base.Now().Add(s.offset)
}

// change replaces the setting and wakes every waiter, unless how says that there
// is nothing to change.
func (c *clock) change(how func(s *setting) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.set.Swap(nil)
	next := *old
	if !how(&next) {
		c.set.Store(old)
		return
	}
	next.moved = make(chan struct{})
	c.set.Store(&next)
	close(old.moved)
}

// advance moves the clock by d. A clock does not run backwards, so d <= 0 does
// nothing.
func (c *clock) advance(d time.Duration) {
	c.change(func(s *setting) bool {
		if s.frozen {
			s.stopped = s.stopped.Add(d)
		} else {
			s.offset += d
		}
		return d > 0
	})
}

// freeze stops the clock; only advance moves it then. A second call changes
// nothing.
func (c *clock) freeze() {
	c.change(func(s *setting) bool {
		if s.frozen {
			return false
		}
		s.stopped, s.frozen = c.at(s), true
		return true
	})
}

// thaw lets a frozen clock run on from where it stands.
func (c *clock) thaw() {
	c.change(func(s *setting) bool {
		if !s.frozen {
			return false
		}
		s.offset, s.frozen = s.stopped.Sub(c.base.Now()), false
		return true
	})
}

// view is the time, whether it stands still, and what tells of the next move.
func (c *clock) view() (now time.Time, frozen bool, moved <-chan struct{}) {
	now, s := c.read()
	return now, s.frozen, s.moved
}

func (c *clock) Go(f func())    { c.base.Go(f) }
func (c *clock) Uint64() uint64 { return c.base.Uint64() }

// Wait is sched.Scheduler's Wait on this clock: a jump past the end of the wait
// ends it, and a frozen clock does not.
func (c *clock) Wait(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case <-wake:
		return nil
	default:
	}
	start, _, _ := c.view()
	for {
		now, frozen, moved := c.view()
		left := d - now.Sub(start)
		if d != sched.Forever && left <= 0 {
			return sched.ErrElapsed
		}
		if done, err := c.waitOnce(ctx, left, d == sched.Forever || frozen, wake, moved); done {
			return err
		}
	}
}

// waitOnce waits until something happens, and says whether that ends the wait.
func (c *clock) waitOnce(ctx context.Context, left time.Duration, noTimer bool, wake, moved <-chan struct{}) (bool, error) {
	var ran <-chan time.Time
	if !noTimer {
		timer := time.NewTimer(left)
		defer timer.Stop()
		ran = timer.C
	}
	select {
	case <-wake:
		return true, nil
	case <-ctx.Done():
		return true, context.Cause(ctx)
	case <-moved:
	case <-ran:
	}
	return false, nil
}

// WithTimeout ends the context when this clock has moved by d.
func (c *clock) WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	if cause == nil {
		cause = context.DeadlineExceeded
	}
	inner, cancel := context.WithCancelCause(ctx)
	out := &timeout{Context: inner}
	c.Go(func() {
		if errors.Is(c.Wait(inner, d, nil), sched.ErrElapsed) {
			out.expired.Store(true)
			cancel(cause)
		}
	})
	return out, func() { cancel(context.Canceled) }
}

// timeout says DeadlineExceeded, as a context with a deadline of the machine's
// clock does, when it was this clock that ended it.
type timeout struct {
	context.Context
	expired atomic.Bool
}

func (t *timeout) Err() error {
	err := t.Context.Err()
	if err != nil && t.expired.Load() {
		return context.DeadlineExceeded
	}
	return err
}
