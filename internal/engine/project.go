package engine

import (
	"context"
	"errors"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// projectRecords makes a task's records findable. Doing it again changes
// nothing, and it touches neither records nor money.
func (e *Engine) projectRecords(ctx context.Context, t protocol.Task) error {
	if f := e.at(protocol.Projecting, t); f.Act == protocol.FailWith {
		return f.Failure
	}
	if e.project == nil {
		return nil
	}
	var rs []protocol.Record
	for _, m := range t.Plan.Mutations {
		r, err := e.store.Record(ctx, t.Workspace, m.RecordID)
		if err != nil {
			return err
		}
		if !r.Forgotten {
			rs = append(rs, r)
		}
	}
	if err := e.project.Project(ctx, rs); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return protocol.Fail(protocol.ProjectionError, "the records are there, search does not know them yet")
	}
	return nil
}

// repairProjection is another try for a task that SUCCEEDED without one. When
// it fails the claim has set the time of the next.
func (e *Engine) repairProjection(ctx context.Context, t protocol.Task) bool {
	err := e.projectRecords(ctx, t)
	if err == nil {
		var after protocol.Task
		after, err = e.store.Apply(ctx, protocol.Projected(t, e.sched.Now()))
		e.tellWritten(t, after, err)
	}
	var f *protocol.Failure
	if err != nil && !errors.As(err, &f) && !errors.Is(err, protocol.ErrStale) {
		e.failed(err)
	}
	return err == nil
}
