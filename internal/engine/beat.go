package engine

import (
	"errors"
	"slices"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
)

// beats keeps the leases of all runners until the engine ends. It comes by at
// least once a heartbeat, so that a runner begins and ends, as most do, without
// a word to it.
func (e *Engine) beats() {
	for {
		now := e.sched.Now()
		next := now.Add(e.limits.Heartbeat)
		var due []*runner
		e.mu.Lock()
		for _, r := range e.running {
			if !r.beat.After(now) {
				due = append(due, r)
				r.met = true
				r.beat = now.Add(e.limits.Heartbeat)
			}
			if r.beat.Before(next) {
				next = r.beat
			}
		}
		e.mu.Unlock()
		for _, r := range due {
			// One whose write takes long must not hold up the others' beats.
			e.spawn(r.extend)
		}
		if sched.Sleep(e.ctx, e.sched, max(next.Sub(now), time.Millisecond)) != nil {
			return
		}
	}
}

// enlist lets a runner's lease be kept until dismiss.
func (e *Engine) enlist(r *runner) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r.beat = e.sched.Now().Add(e.limits.Heartbeat)
	e.running = append(e.running, r)
}

func (e *Engine) dismiss(r *runner) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running = slices.DeleteFunc(e.running, func(x *runner) bool { return x == r })
}

// extend is one beat. A runner that has decided steps is about to write them,
// and needs none.
func (r *runner) extend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.frozen || r.decided || r.ctx.Err() != nil || r.look() != nil || r.task.State != protocol.Running {
		return
	}
	ws := protocol.Extend(r.task, r.e.limits.Lease, r.e.sched.Now())
	err := r.apply(&ws)
	if err != nil && !errors.Is(err, protocol.ErrStale) && r.ctx.Err() == nil {
		r.e.failed(err) // the next beat may get through
	}
}

// sure makes certain, before a model is asked, that the lease is still the
// runner's: one that stood still for longer than its lease must not infer what
// another has planned meanwhile.
func (r *runner) sure(a *ahead) error {
	if r.e.sched.Now().Before(r.far(a).leased) {
		return nil
	}
	return r.write(func(t protocol.Task) (protocol.WriteSet, error) {
		return protocol.Extend(t, r.e.limits.Lease, r.e.sched.Now()), nil
	})
}
