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
	id     string // of its task
	w      protocol.Workspace
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu      *sched.Lock // orders the heartbeat and the steps, which write the same row; held while the store writes
	task    protocol.Task
	decided bool // there are steps that are not written, see ahead
	doubt   bool // a write failed and may have been made: task is read again before the next
	frozen  bool // by a fault: the heartbeat stands still too

	inferring inference
	inline    bool      // in the goroutine of a caller, who waits no longer than patience
	patience  time.Time // see inline

	// Of the engine's lock:
	beat time.Time // when the lease is extended next
	met  bool      // by the heartbeat, which may still hold on to it
}

func (e *Engine) newRunner(t protocol.Task, w protocol.Workspace) *runner {
	r, _ := e.spare.Get().(*runner)
	if r == nil {
		r = &runner{e: e, mu: sched.NewLock(e.sched)}
	}
	r.id, r.w, r.task = t.ID, w, t
	r.ctx, r.cancel = context.WithCancelCause(e.ctx)
	e.enlist(r)
	return r
}

// reuse keeps a runner that has ended for another task, if nobody else can have
// it still: a runner is large, and the inline ones live for microseconds.
func (e *Engine) reuse(r *runner) {
	if r.met || r.inferring.aside {
		return
	}
	*r = runner{e: e, mu: r.mu}
	e.spare.Put(r)
}

// run makes one attempt. Whatever it may not write any more is left to who
// holds the lease now.
func (e *Engine) run(t protocol.Task, w protocol.Workspace) {
	if t.State == protocol.Succeeded {
		e.repairProjection(e.ctx, t)
		return
	}
	r := e.newRunner(t, w)
	r.end(r.attempt())
	e.reuse(r)
}

// end makes of an attempt's outcome what has to be written of it.
func (r *runner) end(err error) {
	e := r.e
	defer e.dismiss(r)
	defer r.cancel(nil)
	if err == nil {
		return
	}
	var f *protocol.Failure
	switch {
	case e.ctx.Err() != nil && e.drains() && !errors.Is(err, errKilled):
		r.giveBack()
		return
	case e.ctx.Err() != nil || errors.Is(err, errKilled) || errors.Is(err, errLeaseLost) || errors.Is(err, protocol.ErrStale):
		return
	case errors.As(err, &f):
	default:
		// The store failed or an invariant stopped a write.
		e.failed(err)
		f = protocol.Fail(protocol.Infrastructure, "the server could not go on")
	}
	wait := e.limits.BackOff.After(r.now(nil).Attempts, sched.Float64(e.sched))
	err = r.write(func(t protocol.Task) (protocol.WriteSet, error) {
		return protocol.Failing(t, f, r.w, wait, e.sched.Now()), nil
	})
	if !errors.Is(err, protocol.ErrStale) && !errors.Is(err, errLeaseLost) {
		e.failed(err)
	}
}

// attempt makes one, and drops what it decided and did not come to write.
func (r *runner) attempt() error {
	var a ahead
	err := r.steps(&a)
	if err != nil {
		r.mu.Lock()
		r.decided = false
		r.mu.Unlock()
	}
	return err
}

// steps is a task's life, each step skipped when a former attempt made it. A
// step is written when something lies between it and the next: a point where
// something may go wrong, or a projection. Else the task goes from its plan to
// its end in one transaction.
func (r *runner) steps(a *ahead) error {
	if !r.far(a).planned {
		if err := r.plan(a); err != nil {
			return err
		}
	}
	if err := r.pass(a, protocol.AfterPlan); err != nil {
		return err
	}
	if !r.far(a).committed {
		if err := r.step(a, func(t protocol.Task) (protocol.WriteSet, error) { return protocol.Commit(t, r.e.sched.Now()) }); err != nil {
			return err
		}
	}
	if err := r.pass(a, protocol.AfterCommit); err != nil {
		return err
	}
	if r.far(a).unprojected {
		if err := r.project(a); err != nil {
			return err
		}
	}
	if err := r.pass(a, protocol.BeforeFinish); err != nil {
		return err
	}
	if err := r.step(a, func(t protocol.Task) (protocol.WriteSet, error) { return protocol.Finish(t, r.e.sched.Now()) }); err != nil {
		return err
	}
	return r.flush(a)
}

func (r *runner) project(a *ahead) error {
	if r.e.project != nil || !r.e.calm(r.id) {
		if err := r.flush(a); err != nil {
			return err
		}
		if r.inline {
			return errDetached
		}
		if err := r.e.projectRecords(r.ctx, r.now(a)); err != nil {
			return err
		}
	}
	return r.step(a, func(t protocol.Task) (protocol.WriteSet, error) { return protocol.Projected(t, r.e.sched.Now()), nil })
}

// plan infers, takes away what the end user has already, and freezes the rest.
func (r *runner) plan(a *ahead) error {
	if !r.inferring.begun { // else this attempt was detached behind it
		if err := r.pass(a, protocol.BeforeInference); err != nil {
			return err
		}
	}
	if err := r.sure(a); err != nil {
		return err
	}
	facts, err := r.infer(a)
	if err != nil {
		return err
	}
	if err := r.pass(a, protocol.AfterInference); err != nil {
		return err
	}
	judged, err := r.filter(a, facts)
	if err != nil {
		return err
	}
	var first int64
	if n := protocol.Numbers(r.now(a).Kind, judged); n > 0 {
		if first, err = r.e.store.Allot(r.ctx, n); err != nil {
			return err
		}
	}
	return r.step(a, func(t protocol.Task) (protocol.WriteSet, error) {
		return protocol.FreezePlan(t, facts, judged, first, r.e.sched.Now())
	})
}
