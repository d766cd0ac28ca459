package engine

import (
	"context"
	"errors"
	"slices"

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
	var ids []string
	for _, m := range t.Plan.Mutations {
		ids = append(append(ids, m.RecordID), m.Supersedes...)
	}
	rs, err := e.readRecords(ctx, t.Workspace, ids)
	if err != nil {
		return err
	}
	if err := e.project.Project(ctx, rs); err != nil {
		return unprojected(ctx)
	}
	// One that was forgotten meanwhile may have been taken out before it was in.
	now, err := e.readRecords(ctx, t.Workspace, ids)
	if err != nil {
		return err
	}
	gone := slices.DeleteFunc(now, func(r protocol.Record) bool { return !r.Forgotten })
	if err := e.project.Project(ctx, gone); err != nil {
		return unprojected(ctx)
	}
	return nil
}

func unprojected(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return protocol.Fail(protocol.ProjectionError, "the records are there, search does not know them yet")
}

// readRecords passes over what is not there: a superseded record may be gone
// altogether.
func (e *Engine) readRecords(ctx context.Context, workspace string, ids []string) ([]protocol.Record, error) {
	var out []protocol.Record
	for _, id := range ids {
		r, err := e.store.Record(ctx, workspace, id)
		switch {
		case err == nil:
			out = append(out, r)
		case !errors.Is(err, protocol.ErrNotFound):
			return nil, err
		}
	}
	return out, nil
}

// withdraw takes forgotten records out of the index. When it fails they stay
// unfindable, since the store knows, and a search that meets one tries again.
func (e *Engine) withdraw(ctx context.Context, rs ...protocol.Record) {
	if e.project != nil && len(rs) > 0 {
		e.failed(e.project.Project(ctx, rs))
	}
}

// repairProjection is another try for a task that SUCCEEDED without one. When
// it fails the claim has set the time of the next.
func (e *Engine) repairProjection(ctx context.Context, t protocol.Task) bool {
	err := e.projectRecords(ctx, t)
	if err == nil {
		var after protocol.Task
		after, err = e.store.Apply(ctx, protocol.Projected(t, e.sched.Now()))
		e.tellWritten(&t, &after, err)
	}
	var f *protocol.Failure
	if err != nil && !errors.As(err, &f) && !errors.Is(err, protocol.ErrStale) {
		e.failed(err)
	}
	return err == nil
}
