package engine

import (
	"context"
	"errors"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// ahead is the steps of an attempt that are decided and not written, if the
// runner has decided any. An attempt keeps them to itself: it ends with none.
type ahead struct{ set protocol.WriteSet }

// now is the task as this runner knows it, with the steps that are not written
// yet.
func (r *runner) now(a *ahead) protocol.Task {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.decided {
		return a.set.Task
	}
	return r.task
}

// progress is how far a task has come, and until when it is the runner's.
type progress struct {
	planned, committed, unprojected bool
	leased                          time.Time
}

// far is the progress of the task that now gives, which is large.
func (r *runner) far(a *ahead) progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := &r.task
	if r.decided {
		t = &a.set.Task
	}
	return progress{t.Plan != nil, t.Committed, t.Projection == protocol.ProjectionPending, t.Lease.Expires}
}

// step decides the next step, and leaves it to flush to write it.
func (r *runner) step(a *ahead, next func(protocol.Task) (protocol.WriteSet, error)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.decided {
		if err := r.look(); err != nil {
			return err
		}
		ws, err := next(r.task)
		if err == nil {
			a.set, r.decided = ws, true
		}
		return err
	}
	ws, err := next(a.set.Task)
	if err == nil {
		a.set = a.set.Then(ws)
	}
	return err
}

// flush writes the steps that were decided, as one. ErrStale means that the
// lease is another's: the runner's context ends with it.
func (r *runner) flush(a *ahead) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.decided {
		return nil
	}
	r.decided = false
	return r.put(&a.set)
}

// write decides one step of the task as it is stored and writes it. Steps that
// are not written yet are dropped.
func (r *runner) write(step func(protocol.Task) (protocol.WriteSet, error)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.decided = false
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
	return r.put(&ws)
}

// put is called with mu held.
func (r *runner) put(ws *protocol.WriteSet) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if err := r.apply(ws); err != nil {
		return err
	}
	if ws.Transition != nil {
		r.e.moved(&r.task)
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
func (r *runner) apply(ws *protocol.WriteSet) error {
	t, err := r.e.store.Apply(r.ctx, *ws)
	r.e.tellWritten(&r.task, &t, err)
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
