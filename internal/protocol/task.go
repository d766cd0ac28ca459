package protocol

import "time"

// State is where a task stands. SUCCEEDED is final; FAILED is final until an
// explicit redrive.
type State string

const (
	Pending   State = "PENDING"
	Running   State = "RUNNING"
	Retrying  State = "RETRYING"
	Succeeded State = "SUCCEEDED"
	Failed    State = "FAILED"
)

// Terminal says that nothing happens by itself any more.
func (s State) Terminal() bool { return s == Succeeded || s == Failed }

// Lease is a runner's right to write. A task is RUNNING if and only if it
// holds one, expired or not.
type Lease struct {
	Owner   string
	Token   string // new at each claim; every write of the runner names it
	Expires time.Time
}

// Held says that there is a lease.
func (l Lease) Held() bool { return l.Token != "" }

// Task is one accepted command: the durable truth about it. A Task is a value;
// what its pointers lead to is never changed, only replaced.
type Task struct {
	ID        string // also the event's and the operation's id
	Workspace string
	Kind      Kind
	Scope     Scope

	Identity    Identity
	Fingerprint Hash
	Command     *Command // the raw input; nil once the task SUCCEEDED, or FAILED and cannot be redriven any more

	State       State
	Version     int64 // +1 with every write
	Run         int   // 1, and one more for each redrive
	Attempts    int   // of this run, counted at the claim
	MaxAttempts int
	Invalid     int // attempts of this run that ended in invalid output
	Lease       Lease
	NextAttempt time.Time // of PENDING and RETRYING, of a projection that waits, and of what a FAILED one still keeps
	Failure     *Failure  // of the last failed attempt; nil once SUCCEEDED

	Plan       *Plan // nil until frozen
	Committed  bool  // records and plan outcome are there; only SUCCEEDED is possible now
	Projection Projection
	Result     *Result // only on SUCCEEDED

	Account Account
	Amount  int64 // 0: nothing of its own is reserved
	// Reservation is the entry id of this run's reservation. With an amount of
	// 0 it is that of another task, which settled and pays for this one too, or
	// empty when the operation is free.
	Reservation string
	Transitions int // how many there are; the next one's number is one more

	CreatedAt, UpdatedAt   time.Time
	StartedAt, CompletedAt time.Time // zero: not yet
}

// Due is when somebody has to look at the task again; false is never.
func (t *Task) Due() (time.Time, bool) {
	switch {
	case t.State == Running:
		return t.Lease.Expires, true
	case t.State == Pending || t.State == Retrying:
		return t.NextAttempt, true
	case t.State == Succeeded && t.Projection == ProjectionPending:
		return t.NextAttempt, true
	case t.State == Failed && t.Command != nil:
		return t.NextAttempt, true // what it keeps for a redrive goes
	}
	return time.Time{}, false
}

// Outcome is what a SUCCEEDED task came to.
type Outcome string

const (
	// Stored: at least one record, new or already there.
	Stored Outcome = "STORED"
	// NoMemory: the input held nothing worth keeping. It is a success.
	NoMemory Outcome = "NO_MEMORY"
	// Deleted: the records of the evidence are tombstones.
	Deleted Outcome = "DELETED"
)

// Result is the evidence a SUCCEEDED task keeps.
type Result struct {
	Outcome Outcome
	Records []Evidence
}

// Evidence points at one record. It does not repeat what the record says: a
// text is stored in its record alone, so that forgetting that is enough.
type Evidence struct {
	ID       string
	Number   int64 // the record's id on MemorySync's wire; 0 on FishMem's
	Existing bool  // the record was there already: an equal fact of its type and key
}
