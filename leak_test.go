package memwrite_test

import (
	"context"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/sched"
)

// counted counts the timers, waits and goroutines a client has going.
type counted struct {
	sched.Scheduler
	live atomic.Int64
}

func newCounted() *counted { return &counted{Scheduler: sched.Real()} }

func (c *counted) Go(f func()) {
	c.live.Add(1)
	c.Scheduler.Go(func() {
		defer c.live.Add(-1)
		f()
	})
}

func (c *counted) Wait(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	c.live.Add(1)
	defer c.live.Add(-1)
	return c.Scheduler.Wait(ctx, d, wake)
}

func (c *counted) WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	c.live.Add(1)
	out, cancel := c.Scheduler.WithTimeout(ctx, d, cause)
	var once sync.Once
	return out, func() {
		once.Do(func() { c.live.Add(-1) })
		cancel()
	}
}

// sockets counts a server's connections. One that was hijacked is its
// handler's to close, and the server says no more about it.
type sockets struct{ opened, open, most atomic.Int64 }

func (s *sockets) state(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.opened.Add(1)
		for now := s.open.Add(1); ; {
			if most := s.most.Load(); now <= most || s.most.CompareAndSwap(most, now) {
				return
			}
		}
	case http.StateClosed, http.StateHijacked:
		s.open.Add(-1)
	}
}

// settles waits for what the other side of a socket still has to notice, at
// most ten seconds.
func settles(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 1000 {
		if ok() {
			return
		}
		if sched.Sleep(t.Context(), sched.Real(), 10*time.Millisecond) != nil {
			break
		}
	}
	stacks := make([]byte, 1<<20)
	t.Errorf("%s\n%s", what, stacks[:runtime.Stack(stacks, true)])
}
