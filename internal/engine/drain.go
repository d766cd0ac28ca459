package engine

import (
	"context"
	"errors"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
)

// Drain ends the engine's work in good order: no task is claimed any more, and
// those that run may end until ctx is done. What runs then is given back by
// Close, so that another process takes it up at once and not when the lease is
// over. Waits for tasks that do not run here end, as if their time was over.
// Commands are accepted still. A second call waits as well.
func (e *Engine) Drain(ctx context.Context) {
	e.mu.Lock()
	e.draining = true
	e.mu.Unlock()
	e.waiters.wakeAll()
	for e.ctx.Err() == nil && e.busyNow() > 0 {
		if err := e.sched.Wait(ctx, e.limits.RepairEvery, e.quiet); err != nil && !errors.Is(err, sched.ErrElapsed) {
			return
		}
	}
}

func (e *Engine) busyNow() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.busy
}

func (e *Engine) drains() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.draining
}

// giveBack ends an attempt that was stopped with the engine. The engine's
// context is over, so it is written without one: the store ends it soon.
func (r *runner) giveBack() {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx := context.WithoutCancel(r.ctx)
	if t, err := r.e.store.Task(ctx, r.task.ID); err != nil || t.Lease.Token != r.task.Lease.Token {
		r.e.failed(err)
		return // it came to its end, somebody else has it, or the lease has to run out
	} else {
		r.task = t
	}
	before := r.task
	after, err := r.e.store.Apply(ctx, protocol.GiveBack(before, r.e.sched.Now()))
	if !errors.Is(err, protocol.ErrStale) {
		r.e.failed(err)
	}
	r.e.tellWritten(&before, &after, err)
	if err == nil {
		r.task = after
		r.e.moved(&after)
	}
}
