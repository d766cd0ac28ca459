package engine

import (
	"context"
	"errors"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// Delete takes away the live records that targets gives, as one operation: all
// of them or none. Under a key the same command later is a replay, which takes
// nothing and tells what the first one took. targets is asked again when a
// record went away meanwhile; its error is returned, and the key stays free. A
// deletion without a key that finds nothing leaves nothing behind.
//
// Errors: ErrConflict (the key belongs to another command), ErrNotFound (no
// such workspace), ErrClosed, those of targets, or the store's.
func (e *Engine) Delete(ctx context.Context, workspace string, c protocol.Command, targets func(context.Context) ([]protocol.Record, error)) (Submitted, error) {
	p := protocol.Proposal{Workspace: protocol.Workspace{ID: workspace}, Command: &c, TaskID: e.taskID(), MaxAttempts: e.limits.MaxAttempts}
	for {
		switch {
		case e.ctx.Err() != nil:
			return Submitted{}, ErrClosed
		case ctx.Err() != nil:
			return Submitted{}, context.Cause(ctx)
		}
		p.Now, p.Targets = e.sched.Now(), nil
		// The twin comes first: its records are gone, so that looking for them
		// would answer a replay as if there had never been any.
		proposed := protocol.Accept(p).Task
		if h := proposed.Identity.Hash; !h.IsZero() {
			t, err := e.store.TaskByIdentity(ctx, h)
			if err == nil {
				return Submitted{Task: t, Replayed: true}, protocol.JudgeTwin(proposed, t)
			}
			if !errors.Is(err, protocol.ErrNotFound) {
				return Submitted{}, err
			}
		}
		found, err := targets(ctx)
		if err != nil {
			return Submitted{}, err
		}
		p.Targets = found
		if c.Key == "" && len(found) == 0 {
			return Submitted{Task: protocol.Accept(p).Task}, nil // nothing to do, and nothing to remember
		}
		a := protocol.Accept(p)
		t, twin, err := e.store.Accept(ctx, a)
		switch {
		case errors.Is(err, protocol.ErrStale):
			continue // somebody else took one of them: look again
		case err != nil:
			return Submitted{}, err
		case twin:
			return Submitted{Task: t, Replayed: true}, protocol.JudgeTwin(proposed, t)
		}
		e.withdraw(ctx, a.Tombstones...)
		return Submitted{Task: t}, nil
	}
}
