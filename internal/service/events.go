package service

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/memwrite/memwrite-go/internal/api"
)

// maxWait is how long Prefer: wait holds an answer at most.
const maxWait = 25 * time.Second

type eventBody struct {
	ID           string            `json:"id"`
	EventType    string            `json:"event_type"`
	Status       State             `json:"status"`
	Scope        map[string]string `json:"scope"`
	Results      []resultBody      `json:"results"`
	WriteSummary *summaryBody      `json:"write_summary"`
	Attempts     int               `json:"attempts"`
	MaxAttempts  int               `json:"max_attempts"`
	Error        *string           `json:"error"`
	ErrorCode    string            `json:"error_code,omitempty"`
	FailureClass string            `json:"failure_class,omitempty"`
	CreatedAt    string            `json:"created_at"`
	UpdatedAt    string            `json:"updated_at"`
	StartedAt    *string           `json:"started_at"`
	CompletedAt  *string           `json:"completed_at"`
	LatencyMS    *int64            `json:"latency_ms"`
}

type summaryBody struct {
	Outcome   string `json:"outcome"`
	Planned   int    `json:"planned"`
	Persisted int    `json:"persisted"`
	Failed    int    `json:"failed"`
}

// eventView is the privacy-safe view of a task: no content, messages, lease or
// payload, since Task carries none.
func eventView(t Task) eventBody {
	out := eventBody{
		ID: t.ID, EventType: "ADD", Status: t.State, Scope: map[string]string{}, Results: []resultBody{},
		Attempts: t.Attempts, MaxAttempts: t.MaxAttempts, Error: optional(t.Failure), ErrorCode: t.FailureCode, FailureClass: t.FailureClass,
		CreatedAt: stamp(t.CreatedAt), UpdatedAt: stamp(t.UpdatedAt),
		StartedAt: optionalStamp(t.StartedAt, stamp), CompletedAt: optionalStamp(t.CompletedAt, stamp),
	}
	for k, v := range map[string]string{"user_id": t.Scope.User, "agent_id": t.Scope.Agent, "run_id": t.Scope.Run} {
		if v != "" {
			out.Scope[k] = v
		}
	}
	if t.State == Succeeded {
		out.Results = resultViews(t.Records)
		out.WriteSummary = &summaryBody{Outcome: "STORED", Planned: len(t.Records), Persisted: len(t.Records)}
		if len(t.Records) == 0 {
			out.WriteSummary.Outcome = "NO_MEMORY"
		}
	}
	if !t.StartedAt.IsZero() && !t.CompletedAt.IsZero() {
		ms := t.CompletedAt.Sub(t.StartedAt).Milliseconds()
		out.LatencyMS = &ms
	}
	return out
}

// inferred says that a task is shown on the event wire.
func inferred(t Task) bool { return t.Operation == OpInfer }

// GetEvent answers GET /v1/events/{id}. With Prefer: wait a state that is not
// terminal is held until it differs from the one at arrival.
func (s *Service) GetEvent(w http.ResponseWriter, r *http.Request, id string, params api.GetEventParams) {
	c := callOf(r)
	task, err := s.backend.Task(r.Context(), c.key.Workspace, id)
	if err == nil && !inferred(task) {
		err = ErrNotFound
	}
	if err == nil {
		if wait, ok := preferredWait(params.Prefer); ok {
			w.Header().Set("Preference-Applied", "wait="+strconv.FormatInt(int64(wait/time.Second), 10))
			if !task.State.Ended() && wait > 0 {
				before, attempts := task.State, task.Attempts
				task, err = s.backend.Await(r.Context(), c.key.Workspace, id, wait, func(t Task) bool {
					return t.State != before || t.Attempts != attempts
				})
			}
		}
	}
	switch {
	case errors.Is(err, ErrNotFound):
		w.Header().Del("Preference-Applied")
		s.refuse(w, r, fail(http.StatusNotFound, "EVENT_NOT_FOUND", "no such event"))
	case err != nil:
		s.fishFailure(w, r, err)
	default:
		answer(w, http.StatusOK, eventView(task))
	}
}

// preferredWait reads wait=N of an RFC 7240 Prefer header, at most maxWait. A
// preference that cannot be read is ignored, as that RFC asks.
func preferredWait(header *string) (time.Duration, bool) {
	if header == nil {
		return 0, false
	}
	for _, part := range strings.FieldsFunc(*header, func(r rune) bool { return r == ',' || r == ';' }) {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if !strings.EqualFold(strings.TrimSpace(name), "wait") {
			continue
		}
		n, err := strconv.Atoi(strings.Trim(strings.TrimSpace(value), `"`))
		if err != nil || n < 0 {
			return 0, false
		}
		return time.Duration(min(n, int(maxWait/time.Second))) * time.Second, true
	}
	return 0, false
}

// ListEvents answers GET /v1/events; a limit out of range is refused here.
func (s *Service) ListEvents(w http.ResponseWriter, r *http.Request, params api.ListEventsParams) {
	limit := 50
	if params.Limit != nil {
		limit = *params.Limit
	}
	if limit < 1 || limit > 100 {
		s.refuse(w, r, fail(http.StatusBadRequest, "INVALID_REQUEST", "limit must be 1 to 100"))
		return
	}
	var state State
	if params.Status != nil {
		switch state = State(*params.Status); state {
		case Pending, Running, Retrying, Succeeded, Failed:
		default:
			s.refuse(w, r, fail(http.StatusBadRequest, "INVALID_REQUEST", "status is not one of the five states"))
			return
		}
	}
	page, f := readCursor(params.Cursor, limit)
	if f != nil {
		s.refuse(w, r, f)
		return
	}
	tasks, err := s.backend.Tasks(r.Context(), callOf(r).key.Workspace, state, page)
	if err != nil {
		s.fishFailure(w, r, err)
		return
	}
	var next *string
	if len(tasks) > limit {
		tasks = tasks[:limit]
		next = nextCursor(tasks[limit-1].CreatedAt, tasks[limit-1].ID)
	}
	out := make([]eventBody, len(tasks))
	for i, t := range tasks {
		out[i] = eventView(t)
	}
	answer(w, http.StatusOK, map[string]any{"results": out, "next_cursor": next})
}

type operationBody struct {
	ID            string          `json:"id"`
	Kind          string          `json:"kind"`
	Status        string          `json:"status"`
	Attempts      int             `json:"attempts"`
	MaxAttempts   int             `json:"max_attempts"`
	Error         *string         `json:"error"`
	ErrorCode     string          `json:"error_code,omitempty"`
	FailureClass  string          `json:"failure_class,omitempty"`
	NextAttemptAt *string         `json:"next_attempt_at"`
	Result        json.RawMessage `json:"result"`
	StartedAt     *string         `json:"started_at"`
	CompletedAt   *string         `json:"completed_at"`
	CreatedAt     string          `json:"created_at"`
	UpdatedAt     string          `json:"updated_at"`
}

// operationStates are the states in the words of the operation wire.
var operationStates = map[State]string{Pending: "pending", Running: "processing", Retrying: "retry", Succeeded: "success", Failed: "dead"}

func operationView(t Task) operationBody {
	out := operationBody{
		ID: t.ID, Kind: "memory_infer", Status: operationStates[t.State], Attempts: t.Attempts, MaxAttempts: t.MaxAttempts,
		Error: optional(t.Failure), ErrorCode: t.FailureCode, FailureClass: t.FailureClass, Result: json.RawMessage("null"),
		StartedAt: optionalStamp(t.StartedAt, stamp), CompletedAt: optionalStamp(t.CompletedAt, stamp),
		CreatedAt: stamp(t.CreatedAt), UpdatedAt: stamp(t.UpdatedAt),
	}
	if t.State == Pending || t.State == Retrying {
		out.NextAttemptAt = optionalStamp(t.NextAttempt, stamp)
	}
	if t.State == Succeeded {
		out.Result, _ = json.Marshal(map[string]any{"results": resultViews(t.Records)})
	}
	return out
}

// GetOperation answers GET /v1/operations/{id}.
func (s *Service) GetOperation(w http.ResponseWriter, r *http.Request, id string) {
	task, err := s.backend.Task(r.Context(), callOf(r).key.Workspace, id)
	if err == nil && !inferred(task) {
		err = ErrNotFound
	}
	switch {
	case errors.Is(err, ErrNotFound):
		s.refuse(w, r, fail(http.StatusNotFound, "OPERATION_NOT_FOUND", "no such operation"))
	case err != nil:
		s.fishFailure(w, r, err)
	default:
		answer(w, http.StatusOK, operationView(task))
	}
}

// RetryOperation answers POST /v1/operations/{id}/retry, the redrive. A task
// that is waiting for a runner or has one is left as it is.
func (s *Service) RetryOperation(w http.ResponseWriter, r *http.Request, id string) {
	c := callOf(r)
	task, err := s.backend.Task(r.Context(), c.key.Workspace, id)
	if err == nil && !inferred(task) {
		err = ErrNotFound
	}
	if err == nil && task.State != Pending && task.State != Running {
		task, err = s.backend.Redrive(r.Context(), c.key.Workspace, id)
	}
	switch {
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrNotRetryable):
		s.refuse(w, r, fail(http.StatusNotFound, "OPERATION_NOT_RETRYABLE", "no such operation that can be retried"))
	case err != nil:
		s.fishFailure(w, r, err)
	default:
		answer(w, http.StatusAccepted, operationView(task))
	}
}
