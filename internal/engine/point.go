package engine

import (
	"context"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
)

// pass goes through a named point, where a fault may wait.
func (r *runner) pass(a *ahead, p protocol.Point) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if r.e.calm(r.id) {
		return nil
	}
	if err := r.flush(a); err != nil {
		return err
	}
	if r.inline {
		return errDetached
	}
	f := r.e.at(p, r.now(a))
	switch f.Act {
	case protocol.Kill:
		r.cancel(errKilled)
		now := r.now(a)
		r.e.tell(protocol.StepUnfinished, &now)
		return errKilled
	case protocol.FailWith:
		return f.Failure
	case protocol.Expire:
		// The lease ends now; the runner goes on and finds out when it writes.
		r.mu.Lock()
		r.frozen = true
		believed := r.task.Lease.Expires
		ws := protocol.Extend(r.task, 0, r.e.sched.Now())
		err := r.apply(&ws)
		r.task.Lease.Expires = believed
		r.mu.Unlock()
		if err == nil {
			r.e.nudge()
		}
		return nil
	case protocol.Freeze:
		r.mu.Lock()
		r.frozen = true
		r.mu.Unlock()
		if err := r.e.sched.Wait(r.ctx, sched.Forever, f.Release); err != nil {
			return context.Cause(r.ctx)
		}
		r.mu.Lock()
		r.frozen = false
		r.mu.Unlock()
	}
	return nil
}
