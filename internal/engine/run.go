package engine

import (
	"context"
	"errors"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
)

// errKilled ends a runner on the spot, as a crash would.
var errKilled = errors.New("engine: the runner was killed")

// errLeaseLost is the cause a runner's context ends with when it may not write
// any more.
var errLeaseLost = errors.New("engine: the lease is lost")

// runner carries one claimed task through one attempt.
type runner struct {
	e      *Engine
	w      protocol.Workspace
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu     sched.Lock // orders the heartbeat and the steps, which write the same row; held while the store writes
	task   protocol.Task
	ahead  *protocol.WriteSet // steps that are decided and not written
	doubt  bool               // a write failed and may have been made: task is read again before the next
	frozen bool               // by a fault: the heartbeat stands still too

	beat time.Time // when the lease is extended next; of the engine's lock
}

// run makes one attempt. Whatever it may not write any more is left to who
// holds the lease now.
func (e *Engine) run(t protocol.Task, w protocol.Workspace) {
	if t.State == protocol.Succeeded {
		e.repairProjection(e.ctx, t)
		return
	}
	ctx, cancel := context.WithCancelCause(e.ctx)
	defer cancel(nil)
	r := &runner{e: e, w: w, ctx: ctx, cancel: cancel, mu: sched.NewLock(e.sched), task: t}
	e.enlist(r)
	defer e.dismiss(r)
	err := r.attempt()
	var f *protocol.Failure
	switch {
	case err != nil && e.ctx.Err() != nil && e.drains() && !errors.Is(err, errKilled):
		r.giveBack()
		return
	case err == nil || e.ctx.Err() != nil || errors.Is(err, errKilled) || errors.Is(err, errLeaseLost) || errors.Is(err, protocol.ErrStale):
		return
	case errors.As(err, &f):
	default:
		// The store failed or an invariant stopped a write.
		e.failed(err)
		f = protocol.Fail(protocol.Infrastructure, "the server could not go on")
	}
	wait := e.limits.BackOff.After(r.now().Attempts, sched.Float64(e.sched))
	err = r.write(func(t protocol.Task) (protocol.WriteSet, error) {
		return protocol.Failing(t, f, w, wait, e.sched.Now()), nil
	})
	if !errors.Is(err, protocol.ErrStale) && !errors.Is(err, errLeaseLost) {
		e.failed(err)
	}
}

// attempt is the steps of a task's life, each skipped when a former attempt
// made it. A step is written when something lies between it and the next: a
// point where something may go wrong, or a projection. Else the task goes from
// its plan to its end in one transaction.
func (r *runner) attempt() error {
	if r.now().Plan == nil {
		if err := r.plan(); err != nil {
			return err
		}
	}
	if err := r.pass(protocol.AfterPlan); err != nil {
		return err
	}
	if !r.now().Committed {
		if err := r.step(func(t protocol.Task) (protocol.WriteSet, error) { return protocol.Commit(t, r.e.sched.Now()) }); err != nil {
			return err
		}
	}
	if err := r.pass(protocol.AfterCommit); err != nil {
		return err
	}
	if r.now().Projection == protocol.ProjectionPending {
		if err := r.project(); err != nil {
			return err
		}
	}
	if err := r.pass(protocol.BeforeFinish); err != nil {
		return err
	}
	if err := r.step(func(t protocol.Task) (protocol.WriteSet, error) { return protocol.Finish(t, r.e.sched.Now()) }); err != nil {
		return err
	}
	return r.flush()
}

func (r *runner) project() error {
	if r.e.project != nil || !r.e.calm(r.now()) {
		if err := r.flush(); err != nil {
			return err
		}
		if err := r.e.projectRecords(r.ctx, r.now()); err != nil {
			return err
		}
	}
	return r.step(func(t protocol.Task) (protocol.WriteSet, error) { return protocol.Projected(t, r.e.sched.Now()), nil })
}

// plan infers, takes away what the end user has already, and freezes the rest.
func (r *runner) plan() error {
	if err := r.pass(protocol.BeforeInference); err != nil {
		return err
	}
	facts, err := r.infer()
	if err != nil {
		return err
	}
	if err := r.pass(protocol.AfterInference); err != nil {
		return err
	}
	judged, err := r.filter(facts)
	if err != nil {
		return err
	}
	var first int64
	if n := protocol.Numbers(r.now().Kind, judged); n > 0 {
		if first, err = r.e.store.Allot(r.ctx, n); err != nil {
			return err
		}
	}
	return r.step(func(t protocol.Task) (protocol.WriteSet, error) {
		return protocol.FreezePlan(t, facts, judged, first, r.e.sched.Now())
	})
}

// now is the task as this runner knows it, with the steps that are not written
// yet.
func (r *runner) now() protocol.Task {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ahead != nil {
		return r.ahead.Task
	}
	return r.task
}

// step decides the next step, and leaves it to flush to write it.
func (r *runner) step(next func(protocol.Task) (protocol.WriteSet, error)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ahead == nil {
		if err := r.look(); err != nil {
			return err
		}
		ws, err := next(r.task)
		if err == nil {
			r.ahead = &ws
		}
		return err
	}
	ws, err := next(r.ahead.Task)
	if err == nil {
		ws = r.ahead.Then(ws)
		r.ahead = &ws
	}
	return err
}

// flush writes the steps that were decided, as one. ErrStale means that the
// lease is another's: the runner's context ends with it.
func (r *runner) flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ahead == nil {
		return nil
	}
	ws := *r.ahead
	r.ahead = nil
	return r.put(ws)
}

// write decides one step of the task as it is stored and writes it. Steps that
// are not written yet are dropped.
func (r *runner) write(step func(protocol.Task) (protocol.WriteSet, error)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ahead = nil
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if err := r.look(); err != nil {
		return err
	}
	ws, err := step(r.task)
	if err != nil {
		return err
	}
	return r.put(ws)
}

// put is called with mu held.
func (r *runner) put(ws protocol.WriteSet) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if err := r.apply(ws); err != nil {
		return err
	}
	if ws.Transition != nil {
		r.e.moved(r.task)
	}
	return nil
}

// look reads the task again after a write that may have been made although it
// failed. It is called with mu held.
func (r *runner) look() error {
	if !r.doubt {
		return nil
	}
	t, err := r.e.store.Task(r.ctx, r.task.ID)
	if err != nil {
		return err
	}
	if t.Lease.Token != r.task.Lease.Token {
		r.cancel(errLeaseLost)
		return errLeaseLost
	}
	r.task, r.doubt = t, false
	return nil
}

// apply writes a set and takes what was written. It is called with mu held.
func (r *runner) apply(ws protocol.WriteSet) error {
	t, err := r.e.store.Apply(r.ctx, ws)
	r.e.tellWritten(r.task, t, err)
	switch {
	case errors.Is(err, protocol.ErrStale):
		r.cancel(errLeaseLost)
	case err != nil:
		r.doubt = true
	default:
		r.task = t
	}
	return err
}

// pass goes through a named point, where a fault may wait.
func (r *runner) pass(p protocol.Point) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if r.e.calm(r.now()) {
		return nil
	}
	if err := r.flush(); err != nil {
		return err
	}
	f := r.e.at(p, r.now())
	switch f.Act {
	case protocol.Kill:
		r.cancel(errKilled)
		r.e.tell(protocol.StepUnfinished, r.now())
		return errKilled
	case protocol.FailWith:
		return f.Failure
	case protocol.Expire:
		// The lease ends now; the runner goes on and finds out when it writes.
		r.mu.Lock()
		r.frozen = true
		err := r.apply(protocol.Extend(r.task, 0, r.e.sched.Now()))
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
