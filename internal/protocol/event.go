package protocol

import "time"

// Event is the view of a task that others may see: never content, messages,
// lease or payload.
type Event struct {
	ID          string
	Workspace   string
	Kind        Kind
	Status      State
	Scope       Scope
	Results     []Evidence // empty unless SUCCEEDED; what they say is in their records
	Outcome     Outcome    // empty unless SUCCEEDED
	Attempts    int
	MaxAttempts int
	Error       string // of the last failed attempt; empty when there is none
	ErrorCode   string
	Class       Class
	CreatedAt   time.Time
	UpdatedAt   time.Time
	StartedAt   time.Time // zero: not yet
	CompletedAt time.Time // zero: not yet
	NextAttempt time.Time // zero unless PENDING or RETRYING; for the operation view
}

// EventOf makes the view.
func EventOf(t Task) Event {
	e := Event{ID: t.ID, Workspace: t.Workspace, Kind: t.Kind, Status: t.State, Scope: t.Scope,
		Attempts: t.Attempts, MaxAttempts: t.MaxAttempts,
		CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt, StartedAt: t.StartedAt, CompletedAt: t.CompletedAt}
	if t.Failure != nil {
		e.Error, e.ErrorCode, e.Class = t.Failure.Message, t.Failure.Code, t.Failure.Class
	}
	if t.Result != nil {
		e.Outcome, e.Results = t.Result.Outcome, t.Result.Records
	}
	if t.State == Pending || t.State == Retrying {
		e.NextAttempt = t.NextAttempt
	}
	return e
}

// Latency is completed minus started, back-off included; false before the end.
func (e Event) Latency() (time.Duration, bool) {
	if e.CompletedAt.IsZero() || e.StartedAt.IsZero() {
		return 0, false
	}
	return e.CompletedAt.Sub(e.StartedAt), true
}
