package conformance_test

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// inferredTask is the task of an event; mu is held.
func (s *second) inferredTask(r *http.Request) *work {
	for _, t := range s.tasks {
		foreign := t.workspace != workspaceOf(r) && !(s.is("isolation/fishmem") && r.Method == http.MethodGet)
		if t.id == r.PathValue("id") && t.kind == "infer" && !foreign {
			return t
		}
	}
	return nil
}

func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// view is an event; mu is held.
func (s *second) view(t *work) map[string]any {
	out := map[string]any{
		"id": t.id, "event_type": "ADD", "status": t.state, "scope": map[string]string{"user_id": t.user}, "results": []any{},
		"attempts": t.attempts, "max_attempts": attemptsAllowed, "error": nil,
		"created_at": stamp(t.created), "updated_at": t.updated.UTC().Format(time.RFC3339Nano), "started_at": stamp(t.started), "completed_at": stamp(t.completed),
	}
	if t.err != "" {
		out["error"] = t.err
	}
	if t.state == "SUCCEEDED" {
		out["results"] = s.results(t)
		outcome := "STORED"
		if len(t.stored) == 0 {
			outcome = "NO_MEMORY"
		}
		out["write_summary"] = map[string]any{"outcome": outcome, "planned": len(t.stored), "persisted": len(t.stored), "failed": 0}
	}
	if s.is("event/privacy") {
		out["content"] = t.content
	}
	return out
}

func (s *second) event(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.inferredTask(r)
	if t == nil {
		s.refuse(w, r, http.StatusNotFound, "EVENT_NOT_FOUND", "no such event")
		return
	}
	if seconds, ok := strings.CutPrefix(r.Header.Get("Prefer"), "wait="); ok {
		n, _ := strconv.Atoi(seconds)
		w.Header().Set("Preference-Applied", "wait="+seconds)
		if !t.ended() && !s.is("event/hold") {
			moved := t.moved
			s.mu.Unlock()
			select {
			case <-moved:
			case <-r.Context().Done():
			case <-time.After(time.Duration(n) * time.Second):
			}
			s.mu.Lock()
		}
	}
	reply(w, http.StatusOK, s.view(t))
}

// events lists, newest first; a cursor is the id to go on after.
func (s *second) events(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	limit, status, cursor := 50, q.Get("status"), q.Get("cursor")
	if v := q.Get("limit"); v != "" {
		limit, _ = strconv.Atoi(v)
	}
	if limit == 0 && s.is("event/list") {
		limit = 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if limit < 1 || limit > 100 || !strings.Contains(" PENDING RUNNING RETRYING SUCCEEDED FAILED ", status) {
		s.refuse(w, r, http.StatusBadRequest, "INVALID_REQUEST", "limit or status is not valid")
		return
	}
	if cursor != "" && !strings.HasPrefix(cursor, "task_") {
		s.refuse(w, r, http.StatusBadRequest, "INVALID_CURSOR", "no such cursor")
		return
	}
	out := []map[string]any{}
	var next any
	past := cursor == ""
	for i := len(s.tasks) - 1; i >= 0; i-- {
		t := s.tasks[i]
		if t.id == cursor {
			past = true
			continue
		}
		if !past || t.kind != "infer" || t.workspace != workspaceOf(r) || (status != "" && t.state != status) {
			continue
		}
		if len(out) == limit {
			next = out[limit-1]["id"]
			break
		}
		out = append(out, s.view(t))
	}
	reply(w, http.StatusOK, map[string]any{"results": out, "next_cursor": next})
}

func (s *second) opView(t *work) map[string]any {
	status := map[string]string{"PENDING": "pending", "RUNNING": "processing", "RETRYING": "retry", "SUCCEEDED": "success", "FAILED": "dead"}[t.state]
	if s.is("event/operation") {
		status = t.state
	}
	return map[string]any{"id": t.id, "kind": "memory_infer", "status": status, "attempts": t.attempts}
}

func (s *second) operation(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.inferredTask(r); t != nil {
		reply(w, http.StatusOK, s.opView(t))
		return
	}
	s.refuse(w, r, http.StatusNotFound, "OPERATION_NOT_FOUND", "no such operation")
}

func (s *second) retry(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.inferredTask(r)
	if t == nil || (t.state == "SUCCEEDED" && !s.is("event/final")) {
		s.refuse(w, r, http.StatusNotFound, "OPERATION_NOT_RETRYABLE", "it cannot be retried")
		return
	}
	if s.strikeLocked(t.id, "exhaust_credits") != nil && !s.is("failed/redrive-credits") {
		s.refuse(w, r, http.StatusPaymentRequired, "INSUFFICIENT_CREDITS", "not enough credits")
		return
	}
	if t.ended() {
		s.redrive(t)
	}
	out := s.opView(t)
	if s.is("failed/redrive") {
		out["id"] = "task_another"
	}
	reply(w, http.StatusAccepted, out)
}
