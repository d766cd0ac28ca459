package engine

import (
	"context"
	"errors"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
)

// Submitted is the answer to a command.
type Submitted struct {
	Task protocol.Task
	// Replayed: the command was here before, and Task is the original one as it
	// stands now. Nothing was charged or written.
	Replayed bool
}

// Submit accepts a command of a workspace, or finds the task it made before.
// It does not wait for the task, except that a Verbatim one is SUCCEEDED
// already.
//
// Errors: ErrConflict (its key belongs to another command), ErrInsufficient as
// an *InsufficientError (nothing kept, the key stays free), ErrNotFound (no
// such workspace), ErrClosed, or the store's.
func (e *Engine) Submit(ctx context.Context, workspace string, c protocol.Command) (Submitted, error) {
	return e.SubmitWith(ctx, workspace, c, Wish{})
}

// Wish is what a caller wants besides its command.
type Wish struct {
	// PaidBy is an earlier task of the same call, when a call with many commands
	// is charged once. See protocol.Proposal.
	PaidBy string
	// Wait is how long the caller waits for its task anyway. A task that is new
	// then runs in the caller's goroutine, if a runner is free for it, and
	// Submit gives it as it stands after that time at the latest.
	Wait time.Duration
}

// SubmitWith is Submit under a wish.
func (e *Engine) SubmitWith(ctx context.Context, workspace string, c protocol.Command, wish Wish) (Submitted, error) {
	if e.ctx.Err() != nil {
		return Submitted{}, ErrClosed
	}
	var payer *protocol.Task
	if wish.PaidBy != "" {
		t, err := e.Task(ctx, workspace, wish.PaidBy)
		if err != nil {
			return Submitted{}, err
		}
		payer = &t
	}
	w, err := e.store.Workspace(ctx, workspace)
	if err != nil {
		return Submitted{}, err
	}
	a := protocol.Accept(protocol.Proposal{Workspace: w, Command: &c, TaskID: e.taskID(), MaxAttempts: e.limits.MaxAttempts, Now: e.sched.Now(), PaidBy: payer})
	if f := e.at(protocol.Arrival, a.Task); f.Act == protocol.Late {
		a.At = a.At.Add(time.Duration(f.Delay))
	}
	var release func()
	if wish.Wait > 0 && a.Task.State == protocol.Pending && e.calm(a.Task.ID) {
		release = e.room()
	}
	inline := release != nil
	if inline {
		a = a.Claimed(e.name, e.random("", 12), e.limits.Lease)
	}
	t, twin, err := e.store.Accept(ctx, a)
	if inline && (err != nil || twin) {
		e.abandon(a.Task, w, err, release)
	}
	if err != nil {
		var short *protocol.InsufficientError
		if errors.As(err, &short) {
			e.tell(protocol.StepRefused, &protocol.Task{Workspace: workspace, Kind: c.Kind, Command: &c})
			short.Strict = w.StrictQuota || short.Account.Unit == protocol.Credits
		}
		return Submitted{}, err
	}
	if !twin {
		e.tell(protocol.StepAccepted, &t)
		switch {
		case inline:
			e.tellClaimed(&protocol.Task{State: protocol.Pending, NextAttempt: t.CreatedAt}, &t)
			t = e.runInline(t, w, wish.Wait, release)
		case t.State.Terminal():
			e.tellWritten(&protocol.Task{}, &t, nil)
			if !e.repairProjection(ctx, t) {
				e.nudge() // the loop tries again
			}
		default:
			e.deliver(t, w)
		}
		return Submitted{Task: t}, nil
	}
	if err := protocol.JudgeTwin(a.Task, t); err != nil {
		e.tell(protocol.StepConflict, broughtBy(t, &c))
		return Submitted{}, err
	}
	e.tell(protocol.StepReplayed, broughtBy(t, &c))
	if !t.State.Terminal() {
		e.announce(t) // a lost delivery costs less when its twin comes
	}
	return Submitted{Task: t, Replayed: true}, nil
}

// Await gives the task once until is true of it, or as it stands after most or
// when ctx is done; only then is the error not nil: sched.ErrElapsed, the cause
// of ctx, or ErrClosed. It sleeps until the task moves. Nobody's going away
// cancels the task. until is called from any goroutine and must not block.
func (e *Engine) Await(ctx context.Context, workspace, id string, most time.Duration, until func(protocol.Task) bool) (protocol.Task, error) {
	x := e.waiters.add(id, until)
	defer e.waiters.remove(id, x)
	end := e.sched.Now().Add(most)
	for {
		t, err := e.Task(ctx, workspace, id)
		if err != nil || until(t) {
			return t, err
		}
		if e.ctx.Err() != nil {
			return t, ErrClosed
		}
		left := end.Sub(e.sched.Now())
		if left <= 0 || (t.State != protocol.Running && e.drains()) {
			return t, sched.ErrElapsed
		}
		// The look every so often is for a wake-up that never came: the task
		// may have been ended by another process.
		if err := e.sched.Wait(ctx, min(left, e.limits.RepairEvery), x.signal); err != nil && !errors.Is(err, sched.ErrElapsed) {
			return t, err
		}
	}
}

// Ended is an until for Await.
func Ended(t protocol.Task) bool { return t.State.Terminal() }

// Redrive starts a FAILED task again, or a RETRYING one now, with attempts from
// zero. A FAILED one reserves again: ErrInsufficient changes nothing. A PENDING
// or RUNNING task comes back unchanged. ErrNotRetryable: no such task of the
// workspace, a SUCCEEDED one, or an add or turn, whose caller sends it again.
func (e *Engine) Redrive(ctx context.Context, workspace, id string) (protocol.Task, error) {
	w, err := e.store.Workspace(ctx, workspace)
	if err != nil {
		return protocol.Task{}, err
	}
	for {
		t, err := e.Task(ctx, workspace, id)
		if errors.Is(err, protocol.ErrNotFound) {
			return t, protocol.ErrNotRetryable
		} else if err != nil {
			return t, err
		}
		ws, change, err := protocol.Redrive(t, w, e.sched.Now())
		if err != nil || !change {
			return t, err
		}
		t, err = e.store.Apply(ctx, ws)
		if errors.Is(err, protocol.ErrStale) {
			continue // it moved meanwhile: judge it anew
		}
		if err == nil {
			e.tell(protocol.StepRedriven, &t)
			e.deliver(t, w)
		}
		return t, err
	}
}

// broughtBy is the task with the command that came this time, whose trace the
// step belongs to.
func broughtBy(t protocol.Task, c *protocol.Command) *protocol.Task {
	t.Command = c
	return &t
}
