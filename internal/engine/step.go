package engine

import (
	"cmp"
	"errors"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// tell passes a step on. The observer must not block.
func (e *Engine) tell(k protocol.StepKind, t *protocol.Task) {
	if e.observe != nil {
		e.observe(e.step(k, t))
	}
}

func (e *Engine) step(k protocol.StepKind, t *protocol.Task) protocol.Step {
	s := protocol.Step{Kind: k, At: e.sched.Now(), Workspace: t.Workspace, TaskID: t.ID, Operation: t.Kind, Run: t.Run, Attempt: t.Attempts, Runner: t.Lease.Owner}
	if t.Failure != nil {
		s.Class = t.Failure.Class
	}
	if t.Command != nil {
		s.Trace = t.Command.Trace
	}
	if !t.CreatedAt.IsZero() {
		s.Age = s.At.Sub(t.CreatedAt)
	}
	return s
}

// tellClaimed is a claim by a runner, or an end by repair; before is the row
// that was found.
func (e *Engine) tellClaimed(before, after *protocol.Task) {
	if e.observe == nil {
		return
	}
	if after.State != protocol.Running {
		e.tellWritten(before, after, nil)
		return
	}
	k := protocol.StepClaimed
	if before.State == protocol.Running {
		k = protocol.StepReclaimed
	}
	s := e.step(k, after)
	if due, ok := before.Due(); ok {
		s.Waited = s.At.Sub(due)
	}
	e.observe(s)
}

// tellWritten is what a write of a runner changed.
func (e *Engine) tellWritten(before, after *protocol.Task, err error) {
	if e.observe == nil {
		return
	}
	if errors.Is(err, protocol.ErrStale) {
		e.tell(protocol.StepFenced, before)
		return
	}
	if err != nil {
		return
	}
	s := e.step("", after)
	if after.Command == nil && before.Command != nil { // the last write takes the input away, and the trace with it
		s.Trace = before.Command.Trace
	}
	s.Runner = cmp.Or(s.Runner, before.Lease.Owner)
	for _, c := range [...]struct {
		is   bool
		kind protocol.StepKind
	}{
		{before.Plan == nil && after.Plan != nil, protocol.StepPlanned},
		{!before.Committed && after.Committed, protocol.StepCommitted},
		{before.Projection == protocol.ProjectionPending && after.Projection == protocol.ProjectionReady, protocol.StepProjected},
		{before.State != after.State && after.State == protocol.Retrying, protocol.StepRetrying},
		{before.State != after.State && after.State == protocol.Succeeded, protocol.StepSucceeded},
		{before.State != after.State && after.State == protocol.Failed, protocol.StepFailed},
	} {
		if c.is {
			s.Kind = c.kind
			e.observe(s)
		}
	}
}
