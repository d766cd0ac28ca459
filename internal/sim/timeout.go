package sim

import (
	"container/heap"
	"context"
	"time"
)

// WithTimeout ends the context when the simulated clock says so.
func (s *scheduler) WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancelCause(ctx)
	if cause == nil {
		cause = context.DeadlineExceeded
	}
	t := &timeout{Context: inner, at: s.now.Add(d), cause: cause, cancel: cancel, heap: -1}
	if d <= 0 {
		t.expire()
		return t, func() {}
	}
	heap.Push(&s.timers, t)
	return t, func() {
		if t.heap >= 0 {
			heap.Remove(&s.timers, t.heap)
		}
		cancel(context.Canceled)
	}
}

// timeout is a context with a deadline on the simulated clock.
type timeout struct {
	context.Context
	at      time.Time
	cause   error
	cancel  context.CancelCauseFunc
	expired bool
	heap    int
}

func (t *timeout) expire() {
	t.expired = t.Context.Err() == nil
	t.cancel(t.cause)
}

func (t *timeout) Deadline() (time.Time, bool) {
	if at, ok := t.Context.Deadline(); ok && at.Before(t.at) {
		return at, true
	}
	return t.at, true
}

func (t *timeout) Err() error {
	if t.expired {
		return context.DeadlineExceeded
	}
	return t.Context.Err()
}

type timers []*timeout

func (h timers) Len() int           { return len(h) }
func (h timers) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h timers) Swap(i, j int)      { h[i], h[j] = h[j], h[i]; h[i].heap, h[j].heap = i, j }
func (h *timers) Push(x any)        { t := x.(*timeout); t.heap = len(*h); *h = append(*h, t) }
func (h *timers) Pop() any {
	n := len(*h) - 1
	t := (*h)[n]
	(*h)[n] = nil
	*h = (*h)[:n]
	t.heap = -1
	return t
}
