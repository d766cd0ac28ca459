package protocol

import "time"

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
	Operation Kind
	Run       int
	Attempt   int
	Class     Class         // of retrying, failed and reclaimed
	Runner    string        // who held the lease
	Trace     string        // traceparent of the request that brought the command
	Age       time.Duration // since the task was accepted
	Waited    time.Duration // claims: how long it was due before
}
