package protocol

import (
	"context"
	"time"
)

// Store keeps everything, atomically, and knows no rule: what to write is
// decided in this package. All methods are safe for concurrent use. Values a
// store returns are the caller's to read; nobody changes what their pointers
// lead to.
type Store interface {
	// Accept writes a command for the first time, or finds its twin. One
	// transaction: when a task holds the identity (and its window is not over
	// at a.At) that task comes back, as it is now, with twin true and nothing
	// is written; otherwise task, identity, entries, records and transitions
	// are written together, and tombstones take the place of their records. When
	// an entry is not covered the error is *InsufficientError, and when a record
	// is a tombstone already it is ErrStale; nothing is kept then.
	Accept(ctx context.Context, a Acceptance) (t Task, twin bool, err error)

	// Claim looks at tasks that are due at now, the longest overdue first,
	// and applies what decide makes of each in the transaction that read it.
	// decide is pure; false skips the task and looks at the next, however many
	// were skipped before it. At most limit write sets are applied; the tasks
	// come back as written, each looked at once a call. A task that another transaction is at is passed
	// over, and so is one whose write set is stopped as ErrInvariant: the error
	// comes back beside the tasks that were written, and none of what it would
	// have written is kept.
	Claim(ctx context.Context, now time.Time, limit int, decide func(Task) (WriteSet, bool)) ([]Task, error)

	// Apply writes a set as a whole if its condition holds; otherwise the
	// error is ErrStale and nothing is written. It returns the task as written.
	Apply(ctx context.Context, w WriteSet) (Task, error)

	// NextDue is when the next task becomes due; false when none ever does.
	NextDue(ctx context.Context) (time.Time, bool, error)

	// Allot reserves n consecutive record numbers and returns the first. They
	// are never given again, used or not.
	Allot(ctx context.Context, n int) (int64, error)

	Task(ctx context.Context, id string) (Task, error) // ErrNotFound
	// TaskByIdentity is the task that holds an identity: ErrNotFound when none
	// does or a failure freed it. A window that is over does not free it; only
	// the next Accept does.
	TaskByIdentity(ctx context.Context, h Hash) (Task, error)
	// Tasks lists, newest first (created, then id), tasks of a workspace.
	Tasks(ctx context.Context, q TaskQuery) ([]Task, error)
	// Transitions lists, in order, what happened in a workspace after a
	// position. A reader that comes back with the last position it saw misses
	// none and sees none twice.
	Transitions(ctx context.Context, workspace string, after int64, limit int) ([]Transition, error)

	Record(ctx context.Context, workspace, id string) (Record, error)              // ErrNotFound; tombstones included
	RecordByNumber(ctx context.Context, workspace string, n int64) (Record, error) // ErrNotFound; tombstones included
	// Records lists, newest first, live records of a scope.
	Records(ctx context.Context, q RecordQuery) ([]Record, error)
	// Similar lists live records an equal fact would be compared with, oldest
	// first: one wire, one scope, one type, one key.
	Similar(ctx context.Context, workspace string, w Wire, s Scope, typ, key string, now time.Time) ([]Record, error)
	// PutRecord replaces a record that exists with its tombstone or an edit.
	PutRecord(ctx context.Context, r Record) error

	PutWorkspace(ctx context.Context, w Workspace) error
	Workspace(ctx context.Context, id string) (Workspace, error) // ErrNotFound
	// Post adds entries on their own: grants.
	Post(ctx context.Context, entries ...Entry) error
	Balance(ctx context.Context, a Account) (Balance, error) // zero when never opened
	Entries(ctx context.Context, workspace string) ([]Entry, error)

	// Snapshot is all of it at one moment, for Check and for tests.
	Snapshot(ctx context.Context) (Snapshot, error)
	Close() error
}

// Acceptance is everything a new command writes at once.
type Acceptance struct {
	Task        Task
	Entries     []Entry  // a grant whose id is there already is skipped
	Records     []Record // the store's own from then on
	Transitions []Transition
	Tombstones  []Record // of records that must still be there; see Record.Forget
	At          time.Time
}

// Condition is what must still be true of a task for a write to happen.
type Condition struct {
	State State
	// Token is the lease the writer holds. Without one (repair, redrive) the
	// write is fenced by State and Version.
	Token   string
	Version int64 // 0: any
}

// Holds judges a condition against the row.
func (c Condition) Holds(t *Task) bool {
	return t.State == c.State && (c.Token == "" || c.Token == t.Lease.Token) && (c.Version == 0 || c.Version == t.Version)
}

// WriteSet is one step of a task's life.
type WriteSet struct {
	If   Condition
	Task Task // the whole new row; the store sets Version to the old one + 1

	Records []Record // new rows, the store's own from then on; an id that exists is ErrInvariant
	// Superseded records become what Record.Supersede makes of them at the
	// task's UpdatedAt. One that is forgotten or not there is passed over.
	Superseded []Supersession
	Projected  bool // the task's records, those of this set too, become visible to search
	Entries    []Entry
	Transition *Transition
	Free       bool // the identity is free again: the next command under it is a new one
}

// Then is two steps of one task that nothing lies between, as one: next was made
// of the row w leaves. At most one of them has a transition.
func (w WriteSet) Then(next WriteSet) WriteSet {
	next.If = w.If
	next.Records = joined(w.Records, next.Records)
	next.Superseded = joined(w.Superseded, next.Superseded)
	next.Entries = joined(w.Entries, next.Entries)
	next.Projected = w.Projected || next.Projected
	next.Free = w.Free || next.Free
	if next.Transition == nil {
		next.Transition = w.Transition
	}
	return next
}

// joined is the rows of two steps. Few steps have any of a kind, and what one has
// alone is not copied.
func joined[T any](first, second []T) []T {
	switch {
	case len(first) == 0:
		return second
	case len(second) == 0:
		return first
	}
	return append(first[:len(first):len(first)], second...)
}

// Supersession says whose place a record takes.
type Supersession struct{ ID, By string }

// TaskQuery selects tasks of one workspace. It costs what it gives back, and
// not what else is stored.
type TaskQuery struct {
	Workspace string
	Kinds     []Kind // empty: all
	State     State  // empty: all
	After     *Place // list what is older than this
	Limit     int    // 0: no bound
}

// RecordQuery selects live records of one workspace and wire. Scope fields that
// are empty match any; at least EndUser or one of FishMem's three is set.
type RecordQuery struct {
	Workspace string
	Wire      Wire
	Scope     Scope
	Now       time.Time
	After     *Place
	Limit     int  // 0: no bound
	Projected bool // only what search knows
}

// Place is a position in a list that is ordered by creation, newest first.
type Place struct {
	Created time.Time
	ID      string
}

// Before says that a row at p comes before one at q in such a list.
func (p Place) Before(q Place) bool {
	if !p.Created.Equal(q.Created) {
		return p.Created.After(q.Created)
	}
	return p.ID > q.ID
}

// Snapshot is a whole store at one moment.
type Snapshot struct {
	Workspaces  []Workspace
	Tasks       []Task
	Identities  map[Hash]string // to the task that holds it
	Records     []Record
	Entries     []Entry
	Balances    []Balance
	Transitions []Transition
}
