package engine

import (
	"errors"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// StepKind is what happened to a command or to its task.
type StepKind string

const (
	StepAccepted   StepKind = "accepted"   // a new task
	StepReplayed   StepKind = "replayed"   // a twin; nothing was written
	StepConflict   StepKind = "conflict"   // its key belongs to another command
	StepRefused    StepKind = "refused"    // no credits or no quota; nothing was kept
	StepClaimed    StepKind = "claimed"    // a runner holds it
	StepReclaimed  StepKind = "reclaimed"  // the same, from a runner that was lost
	StepPlanned    StepKind = "planned"    // the plan is frozen
	StepCommitted  StepKind = "committed"  // records are there
	StepProjected  StepKind = "projected"  // search knows them
	StepRetrying   StepKind = "retrying"   // the attempt failed; Class says how
	StepSucceeded  StepKind = "succeeded"  // settled
	StepFailed     StepKind = "failed"     // released
	StepFenced     StepKind = "fenced"     // a write without the lease was refused
	StepRedriven   StepKind = "redriven"   // begins again by request
	StepUnfinished StepKind = "unfinished" // the runner is gone without a word
)

// Step is one thing that happened, told once by the process in which it did. It
// holds nothing of the input: it may be logged, counted and shown.
type Step struct {
	Kind      StepKind
	At        time.Time
	Workspace string
	TaskID    string // empty when nothing was kept
	Operation protocol.Kind
	Run       int
	Attempt   int
	Class     protocol.Class // of retrying, failed and reclaimed
	Runner    string         // who held the lease
	Trace     string         // traceparent of the request that brought the command
	Age       time.Duration  // since the task was accepted
	Waited    time.Duration  // claims: how long it was due before
}

// tell passes a step on. The observer must not block.
func (e *Engine) tell(k StepKind, t protocol.Task) {
	if e.observe != nil {
		e.observe(e.step(k, t))
	}
}

func (e *Engine) step(k StepKind, t protocol.Task) Step {
	s := Step{Kind: k, At: e.sched.Now(), Workspace: t.Workspace, TaskID: t.ID, Operation: t.Kind, Run: t.Run, Attempt: t.Attempts, Runner: t.Lease.Owner}
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
func (e *Engine) tellClaimed(before, after protocol.Task) {
	if e.observe == nil {
		return
	}
	if after.State != protocol.Running {
		e.tellWritten(before, after, nil)
		return
	}
	k := StepClaimed
	if before.State == protocol.Running {
		k = StepReclaimed
	}
	s := e.step(k, after)
	if due, ok := before.Due(); ok {
		s.Waited = s.At.Sub(due)
	}
	e.observe(s)
}

// tellWritten is what a write of a runner changed.
func (e *Engine) tellWritten(before, after protocol.Task, err error) {
	if e.observe == nil {
		return
	}
	if errors.Is(err, protocol.ErrStale) {
		e.tell(StepFenced, before)
		return
	}
	if err != nil {
		return
	}
	if after.Command == nil { // the last write takes the input away, and the trace with it
		after.Command = before.Command
	}
	if after.Lease.Owner == "" {
		after.Lease.Owner = before.Lease.Owner
	}
	for _, c := range []struct {
		is   bool
		kind StepKind
	}{
		{before.Plan == nil && after.Plan != nil, StepPlanned},
		{!before.Committed && after.Committed, StepCommitted},
		{before.Projection == protocol.ProjectionPending && after.Projection == protocol.ProjectionReady, StepProjected},
		{before.State != after.State && after.State == protocol.Retrying, StepRetrying},
		{before.State != after.State && after.State == protocol.Succeeded, StepSucceeded},
		{before.State != after.State && after.State == protocol.Failed, StepFailed},
	} {
		if c.is {
			e.tell(c.kind, after)
		}
	}
}
