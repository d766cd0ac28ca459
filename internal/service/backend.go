package service

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// Operation is what a write asks for.
type Operation string

// The writes of both wires. Inferred and verbatim writes of FishMem share one
// key space.
const (
	OpAdd      Operation = "add"      // MemorySync /memory/add
	OpTurn     Operation = "turn"     // MemorySync add_turn
	OpInfer    Operation = "infer"    // FishMem, infer true
	OpVerbatim Operation = "verbatim" // FishMem, infer false
)

// State is a task's state in the words of the event wire.
type State string

// The states of a task.
const (
	Pending   State = "PENDING"
	Running   State = "RUNNING"
	Retrying  State = "RETRYING"
	Succeeded State = "SUCCEEDED"
	Failed    State = "FAILED"
)

// Ended says that no runner will touch the task again by itself.
func (s State) Ended() bool { return s == Succeeded || s == Failed }

// Scope is whose memory it is. MemorySync's is (tenant, project, end user),
// FishMem's (user, agent, run); a record of one is not seen on the other.
type Scope struct {
	Service string
	Tenant  string
	Project string
	User    string
	Agent   string
	Run     string
}

// Message is one message of a conversation.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Write is one write as it was asked for, validated.
type Write struct {
	Workspace string
	Operation Operation
	Scope     Scope

	// Key is the identity: Idempotency-Key, client_ref or the fields of a
	// turn's replay key. Empty is a write that is recognised by nothing.
	Key    string
	KeyTTL time.Duration // 0: for ever

	Text      string
	Messages  []Message
	EventDate string
	Metadata  json.RawMessage

	Source, EventType, SessionID string
	Tags                         []string
	TTL                          time.Duration // of the records; 0: for ever
	Importance                   float64
	NoDedup                      bool // switches the near-duplicate filter off
	Speaker, OccurredAt          string

	// Wait is how long the caller waits for the task. Submit may take as long.
	Wait time.Duration
	// PaidBy is an earlier task of the same call, of a call that is charged
	// once: if that one SUCCEEDED, this write is not charged itself.
	PaidBy string

	Trace string // traceparent of the request, "" without a valid one
}

// Result is one record of a task, as the receipt and the event name it.
type Result struct {
	Record Record
}

// Task is what a caller of its own workspace may know of a task.
type Task struct {
	ID           string
	Operation    Operation
	State        State
	Scope        Scope
	Attempts     int
	MaxAttempts  int
	Failure      string // text of the last failed attempt, "" when none
	FailureCode  string
	FailureClass string
	Records      []Record // of a SUCCEEDED task: what it stored, or the record that was there
	Deduplicated bool     // Records were there before
	Candidates   int      // facts the extractor found
	CreatedAt    time.Time
	UpdatedAt    time.Time
	StartedAt    time.Time
	CompletedAt  time.Time
	NextAttempt  time.Time
}

// Record is one stored memory.
type Record struct {
	ID         string // opaque; of FishMem's wire
	Number     int64  // of MemorySync's wire
	UserNumber int64
	TaskID     string
	Scope      Scope
	Text       string
	Type       string
	Key        string
	Importance float64
	Metadata   json.RawMessage
	Source     string
	EventType  string
	EventDate  string
	Tags       []string
	CreatedAt  time.Time
	UpdatedAt  time.Time
	ExpiresAt  time.Time
	Score      float64 // of a search
}

// Page is where in a list to go on, newest first: after the item made at At
// with the id ID. The zero page is the beginning.
type Page struct {
	At    time.Time
	ID    string
	Limit int
}

// Account is one account of the workspace's ledger.
type Account struct {
	Limited   bool
	Granted   int64
	Available int64
	Reserved  int64
	Settled   int64
	Released  int64
	ResetsAt  time.Time
}

// Usage is both accounts.
type Usage struct {
	Credits, Adds Account
	Balanced      bool
}

// Backlog is what health reports.
type Backlog struct {
	Pending, Dead       int
	OldestPending       time.Time
	ProjectionsPending  int
	ProviderUnavailable bool
}

// What a backend may answer instead of doing what it was asked. None of them
// leaves anything behind.
var (
	ErrConflict     = errors.New("service: the key names another command")
	ErrCredits      = errors.New("service: not enough credits")
	ErrQuotaSilent  = errors.New("service: the monthly quota is used up and drops writes silently")
	ErrQuotaStrict  = errors.New("service: the monthly quota is used up")
	ErrNotFound     = errors.New("service: no such thing in this workspace")
	ErrNotRetryable = errors.New("service: the task cannot be redriven")
	ErrTooMany      = errors.New("service: too many records for one call")
	// ErrUnavailable alone may have left something behind: the same request,
	// sent again, finds it.
	ErrUnavailable = errors.New("service: the store is not available")
)

// Backend is the protocol behind both wires. Every call names the workspace it
// is made for, and nothing of another one is found.
type Backend interface {
	// Submit accepts a write, or finds the one its key names. The task may
	// have ended already; replayed says that an earlier call made it.
	Submit(ctx context.Context, w Write) (task Task, replayed bool, err error)
	// Await gives the task as soon as done says so, at the latest after
	// wait: then as it is. done sees id, state and attempts.
	Await(ctx context.Context, workspace, id string, wait time.Duration, done func(Task) bool) (Task, error)
	Task(ctx context.Context, workspace, id string) (Task, error)
	// Tasks lists inferred writes of FishMem, newest first; state "" is all.
	Tasks(ctx context.Context, workspace string, state State, page Page) ([]Task, error)
	Redrive(ctx context.Context, workspace, id string) (Task, error)

	// Records lists a scope's records, newest first. Empty fields of the
	// scope match everything, except Service and Tenant.
	Records(ctx context.Context, workspace string, scope Scope, page Page) ([]Record, error)
	Record(ctx context.Context, workspace, service, id string) (Record, error)
	RecordByNumber(ctx context.Context, workspace string, n int64) (Record, error)
	// Search ranks a scope's records by nearness to the query, best first.
	Search(ctx context.Context, workspace string, scope Scope, query string, limit int) ([]Record, error)
	// Delete removes records by id and gives the ids that were there. With a
	// key the first answer is given again for the same command.
	Delete(ctx context.Context, workspace string, d Deletion) (deleted []string, replayed bool, err error)

	Usage(ctx context.Context, workspace string) (Usage, error)
	Backlog(ctx context.Context, workspace string) (Backlog, error)
}

// Deletion names what shall go: ids, or all of a scope.
type Deletion struct {
	Operation string // "delete" or "delete_all", part of the command
	Key       string
	IDs       []string
	Scope     Scope
	All       bool
	Max       int // of All: more targets than this are refused
}
