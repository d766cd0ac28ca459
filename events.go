package memwrite

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/memwrite/memwrite-go/internal/api"
)

// EventStatus is the state of a task as its event shows it. Unknown values are
// kept and count as not ended.
type EventStatus string

// The states.
const (
	Pending   EventStatus = "PENDING"   // recorded; nobody works on it
	Running   EventStatus = "RUNNING"   // a runner holds a lease, perhaps one that has run out
	Retrying  EventStatus = "RETRYING"  // an attempt failed, another is due
	Succeeded EventStatus = "SUCCEEDED" // committed and settled; final
	Failed    EventStatus = "FAILED"    // no attempt is left and nothing was committed; only Redrive goes on
)

// Terminal tells whether the task does nothing more by itself.
func (s EventStatus) Terminal() bool { return s == Succeeded || s == Failed }

func (s EventStatus) known() bool {
	switch s {
	case Pending, Running, Retrying, Succeeded, Failed:
		return true
	}
	return false
}

// FailureClass says why a task failed. Only the reference server sends it; the
// live wire has none, and unknown values are kept.
type FailureClass string

// canPass: an absent class, and one not known, is worth a Redrive.
func (f FailureClass) canPass() bool {
	s := strings.ToLower(string(f))
	for _, never := range []string{"conflict", "invalid", "authoriz", "credit"} {
		if strings.Contains(s, never) {
			return false
		}
	}
	return true
}

// WriteResult is one record that a write made.
type WriteResult struct {
	ID     string `json:"id"`
	Memory string `json:"memory"`
	Event  string `json:"event"` // ADD; other values are possible
}

// WriteSummary counts what a plan held and what was kept of it.
type WriteSummary struct {
	Outcome   string `json:"outcome"` // STORED or NO_MEMORY
	Planned   int    `json:"planned"`
	Persisted int    `json:"persisted"`
	Failed    int    `json:"failed"`
}

// Event is a task's public side. It never holds what was written.
type Event struct {
	ID           string        `json:"id"`
	Type         string        `json:"event_type"`
	Status       EventStatus   `json:"status"`
	Scope        Scope         `json:"scope"`
	Results      []WriteResult `json:"results"` // empty unless SUCCEEDED, and possibly then
	Summary      *WriteSummary `json:"write_summary"`
	Attempts     int           `json:"attempts"` // of the server's runners
	MaxAttempts  int           `json:"max_attempts"`
	Error        string        `json:"error"` // of the last attempt: diagnostic words, not to be branched on
	ErrorCode    string        `json:"error_code"`
	FailureClass FailureClass  `json:"failure_class"`
	CreatedAt    string        `json:"created_at"`
	UpdatedAt    string        `json:"updated_at"`
	StartedAt    string        `json:"started_at"`
	CompletedAt  string        `json:"completed_at"`
	LatencyMS    *int64        `json:"latency_ms"` // back-off included
}

// NoMemory tells a task that succeeded and found nothing worth storing: a
// legal outcome, and not a stored memory.
func (e *Event) NoMemory() bool { return e.Status == Succeeded && len(e.Results) == 0 }

// Event reads one event.
func (c *Client) Event(ctx context.Context, id string) (*Event, error) {
	ev, _, err := c.event(ctx, "Event", id, "")
	return ev, err
}

// event reads an event, and holds the read until its state changes when prefer
// says so and the server can.
func (c *Client) event(ctx context.Context, op, id, prefer string) (*Event, answer, error) {
	svc, err := c.forFishMem(op)
	if err != nil {
		return nil, answer{}, err
	}
	if err := checkID(op, id); err != nil {
		return nil, answer{}, err
	}
	h, err := api.NewGetEventRequest(svc.base, id, &api.GetEventParams{Prefer: ptr(prefer)})
	if err != nil {
		return nil, answer{}, invalid(op, "id", "cannot stand in a path")
	}
	ev := new(Event)
	// A held read that fails is followed by one that is not held.
	r := request{op: op, identity: id, http: h, safe: true, once: prefer != ""}
	r.form = decoded(ev, "the answer is not the event that was asked for", func() bool { return ev.ID == id && ev.Status != "" })
	a, err := svc.do(ctx, r)
	if err != nil {
		return nil, answer{}, err
	}
	svc.quietEvent(ev)
	return ev, a, nil
}

// EventFilter narrows Events. There is none for time, scope or key on the wire.
type EventFilter struct {
	Status EventStatus // empty: all
	Page   int         // events of one request, 1 to 100; 0 is 100
}

// Events walks over all events of the workspace, newest first, page by page.
// It ends after the first error. Stopping early is fine.
func (c *Client) Events(ctx context.Context, f EventFilter) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		cursor, seen := "", cursors{}
		for {
			page, next, err := c.eventPage(ctx, "Events", f, cursor, 0)
			if err != nil {
				yield(Event{}, err)
				return
			}
			for _, ev := range page {
				if !yield(ev, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			if err := seen.again("Events", next); err != nil {
				yield(Event{}, err)
				return
			}
			cursor = next
		}
	}
}

// eventPage reads one page. With a timeout it has one try, which that bounds.
func (c *Client) eventPage(ctx context.Context, op string, f EventFilter, cursor string, timeout time.Duration) ([]Event, string, error) {
	svc, err := c.forFishMem(op)
	if err != nil {
		return nil, "", err
	}
	limit := f.Page
	if limit == 0 {
		limit = 100
	}
	if limit < 1 || limit > 100 {
		return nil, "", invalid(op, "Page", "is outside 1 to 100")
	}
	p := &api.ListEventsParams{Limit: &limit, Cursor: ptr(cursor)}
	if f.Status != "" {
		s := api.EventStatus(f.Status)
		p.Status = &s
	}
	h, err := api.NewListEventsRequest(svc.base, p)
	if err != nil {
		return nil, "", invalid(op, "filter", "cannot stand in a query")
	}
	var page struct {
		Results *[]Event `json:"results"`
		Next    string   `json:"next_cursor"`
	}
	r := request{op: op, http: h, safe: true, once: timeout > 0, timeout: timeout}
	r.form = decoded(&page, "the answer is not a page of events", func() bool { return page.Results != nil })
	if _, err := svc.do(ctx, r); err != nil {
		return nil, "", err
	}
	for i := range *page.Results {
		svc.quietEvent(&(*page.Results)[i])
	}
	return *page.Results, page.Next, nil
}

// Operation is the same task seen as an operation, with its next attempt.
type Operation struct {
	ID            string       `json:"id"`
	Kind          string       `json:"kind"`
	Status        string       `json:"status"` // pending, processing, retry, success, dead; open
	Attempts      int          `json:"attempts"`
	MaxAttempts   int          `json:"max_attempts"`
	Error         string       `json:"error"`
	ErrorCode     string       `json:"error_code"`
	FailureClass  FailureClass `json:"failure_class"`
	NextAttemptAt string       `json:"next_attempt_at"`
	CreatedAt     string       `json:"created_at"`
	UpdatedAt     string       `json:"updated_at"`
	StartedAt     string       `json:"started_at"`
	CompletedAt   string       `json:"completed_at"`
}

func (o *Operation) event() *Event {
	status, ok := map[string]EventStatus{
		"pending": Pending, "processing": Running, "retry": Retrying, "success": Succeeded, "dead": Failed,
	}[o.Status]
	if !ok {
		status = EventStatus(strings.ToUpper(o.Status))
	}
	return &Event{
		ID: o.ID, Type: "ADD", Status: status, Attempts: o.Attempts, MaxAttempts: o.MaxAttempts, Error: o.Error,
		ErrorCode: o.ErrorCode, FailureClass: o.FailureClass, CreatedAt: o.CreatedAt, UpdatedAt: o.UpdatedAt,
		StartedAt: o.StartedAt, CompletedAt: o.CompletedAt,
	}
}

// Operation reads an operation; its id is the event's.
func (c *Client) Operation(ctx context.Context, id string) (*Operation, error) {
	const op = "Operation"
	svc, err := c.forFishMem(op)
	if err != nil {
		return nil, err
	}
	if err := checkID(op, id); err != nil {
		return nil, err
	}
	h, err := api.NewGetOperationRequest(svc.base, id)
	if err != nil {
		return nil, invalid(op, "id", "cannot stand in a path")
	}
	return svc.operation(ctx, request{op: op, identity: id, http: h, safe: true})
}

func (s *service) operation(ctx context.Context, r request) (*Operation, error) {
	o := new(Operation)
	r.form = decoded(o, "the answer is not the operation that was asked for", func() bool { return o.ID == r.identity && o.Status != "" })
	if _, err := s.do(ctx, r); err != nil {
		return nil, err
	}
	return o, nil
}

// Redrive runs a FAILED event again, or a RETRYING one without its back-off:
// POST /v1/operations/{id}/retry. It keeps the event's id, key and frozen plan,
// and has to reserve credits anew. The event comes back pending.
//
// A second call while it runs changes nothing. When the service answers that
// the event cannot be run again, the event is read first: a redrive whose
// answer was lost may have worked and ended, and then that event is the result.
func (c *Client) Redrive(ctx context.Context, id string) (*Event, error) {
	const op = "Redrive"
	svc, err := c.forFishMem(op)
	if err != nil {
		return nil, err
	}
	if err := checkID(op, id); err != nil {
		return nil, err
	}
	h, err := api.NewRetryOperationRequest(svc.base, id)
	if err != nil {
		return nil, invalid(op, "id", "cannot stand in a path")
	}
	o, err := svc.operation(ctx, request{op: op, identity: id, http: h, safe: true})
	if err == nil {
		return o.event(), nil
	}
	var e *Error
	if errors.As(err, &e) && e.Kind == KindNotFound && e.Code == "OPERATION_NOT_RETRYABLE" {
		ev, _, readErr := c.event(ctx, op, id, "")
		switch {
		case readErr == nil && ev.Status != Failed:
			return ev, nil
		case readErr == nil:
			e.Event = ev
		case VerdictOf(readErr).Action != Hold: // nobody knows what became of it yet
			return nil, readErr
		}
	}
	return nil, err
}

func checkID(op, id string) error {
	if err := checkText(op, "id", id); err != nil {
		return err
	}
	if id == "." || id == ".." {
		return invalid(op, "id", "is a path of its own")
	}
	return nil
}
