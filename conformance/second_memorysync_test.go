package conformance_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

func (s *second) memorySyncRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /org/projects", func(w http.ResponseWriter, r *http.Request) {
		reply(w, http.StatusOK, []map[string]string{{"id": "p", "tenant_id": workspaceOf(r), "name": "p"}})
	})
	mux.HandleFunc("POST /memory/add", s.add)
	mux.HandleFunc("GET /memory/{id}", s.memory)
	mux.HandleFunc("DELETE /memory/forget", s.forget)
	mux.HandleFunc("POST /memory/query", func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusBadRequest
		if s.is("errors/memorysync-input") {
			status = http.StatusUnprocessableEntity
		}
		s.refuse(w, r, status, "MISSING_END_USER_ID", "X-End-User-ID is required")
	})
	mux.HandleFunc("POST /v1/memory/add_turn", s.addTurn)
	mux.HandleFunc("GET /v1/memory/{tenant}/{user}/list", s.list)
}

// add waits for its task, or for the one its reference names.
func (s *second) add(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Text string `json:"text"`
		Ref  string `json:"client_ref"`
	}
	_ = json.Unmarshal(bodyOf(r), &in)
	workspace, user := workspaceOf(r), r.Header.Get("X-End-User-ID")
	scope := workspace + "|" + user
	switch s.broken {
	case "add/ref-scope":
		scope = workspace
	case "isolation/client-ref":
		scope = user
	}
	identity := "add|" + scope + "|" + in.Ref
	ghost := func() { // a reference that is taken although nothing was written
		s.mu.Lock()
		s.named[identity] = &work{state: "SUCCEEDED", moved: make(chan struct{})}
		s.mu.Unlock()
	}
	if len(strings.TrimSpace(in.Text)) < 10 {
		if s.is("add/refused") {
			ghost()
		}
		s.refuse(w, r, http.StatusUnprocessableEntity, "VALIDATION_ERROR", "text must be at least 10 characters")
		return
	}
	if s.strike(in.Ref, "exhaust_quota") != nil {
		if s.is("add/quota") {
			ghost()
		}
		reply(w, http.StatusOK, map[string]string{"status": "ok"})
		return
	}
	s.mu.Lock()
	t, replayed := s.named[identity]
	if s.is("add/concurrent") && !replayed {
		s.race(identity)
	}
	if replayed && s.is("add/other-text") && t.content != in.Text {
		replayed = false
	}
	if !replayed {
		t = &work{workspace: workspace, wire: "memorysync", user: user, kind: "add", name: in.Ref, identity: identity, inputs: []string{in.Text}, content: in.Text}
		s.accept(t)
	} else if s.is("billing/add") {
		t.reserved, t.settled = t.reserved+1, t.settled+1
	}
	s.mu.Unlock()
	s.await(t, 5*time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case t.state == "FAILED":
		s.refuse(w, r, http.StatusInternalServerError, "EXTRACTION_FAILED", "nothing was stored")
	case t.state != "SUCCEEDED":
		w.Header().Set("Retry-After", "1")
		s.refuse(w, r, http.StatusServiceUnavailable, "BUSY", "still running")
	case replayed:
		ids := []int{}
		for _, m := range t.stored {
			n := m.number
			if s.is("add/repeat") {
				n += 1000
			}
			ids = append(ids, n)
		}
		reply(w, http.StatusOK, map[string]any{"status": "skipped", "reason": "already_ingested", "memory_ids": ids, "client_ref": in.Ref})
	default:
		reply(w, http.StatusCreated, map[string]any{"id": t.stored[0].number, "text": t.stored[0].text})
	}
}

func (s *second) memory(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.Atoi(r.PathValue("id"))
	s.mu.Lock()
	defer s.mu.Unlock()
	known := false
	for _, m := range s.memories {
		if m.number != n || m.wire != "memorysync" {
			continue
		}
		known = true
		foreign := m.workspace != workspaceOf(r) && !s.is("isolation/memorysync")
		if !m.gone && !foreign && m.user == r.Header.Get("X-End-User-ID") && !s.is("add/first") {
			reply(w, http.StatusOK, map[string]any{"id": m.number, "text": m.text})
			return
		}
	}
	status := http.StatusNotFound
	if !known && s.is("errors/memorysync-not-found") {
		status = http.StatusGone
	}
	s.refuse(w, r, status, "Memory not found", "Memory not found")
}

func (s *second) forget(w http.ResponseWriter, r *http.Request) {
	var in struct {
		IDs []int `json:"memory_ids"`
	}
	_ = json.Unmarshal(bodyOf(r), &in)
	s.mu.Lock()
	defer s.mu.Unlock()
	deleted := 0
	for _, m := range s.memories {
		for _, id := range in.IDs {
			if m.number == id && !m.gone && m.workspace == workspaceOf(r) && m.user == r.Header.Get("X-End-User-ID") {
				m.gone = true
				deleted++
			}
		}
	}
	if deleted == 0 && s.is("delete/forget") {
		s.refuse(w, r, http.StatusNotFound, "Memory not found", "Memory not found")
		return
	}
	reply(w, http.StatusOK, map[string]int{"deleted": deleted})
}

func (s *second) addTurn(w http.ResponseWriter, r *http.Request) {
	var in struct {
		User     string `json:"user_id"`
		Role     string `json:"role"`
		Speaker  string `json:"speaker"`
		Occurred string `json:"occurred_at"`
		Text     string `json:"text"`
	}
	_ = json.Unmarshal(bodyOf(r), &in)
	if in.Text == "" {
		s.refuse(w, r, http.StatusUnprocessableEntity, "text must not be empty", "text must not be empty")
		return
	}
	if s.is("turn/key") {
		in.Occurred = strings.Replace(in.Occurred, "+00:00", "Z", 1)
	}
	workspace := workspaceOf(r)
	key, _ := json.Marshal([]string{"turn", workspace, in.User, in.Speaker, in.Occurred, in.Text})
	identity := string(key)
	receipt := func(status, processing string, exists bool, id any) {
		body := map[string]any{"memory_id": nil, "status": status, "processing_status": processing, "already_exists": exists, "request_id": id}
		if s.is("turn/first") && processing == "distilling" {
			body["memory_id"] = "m_1"
		}
		reply(w, http.StatusCreated, body)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if m := s.strikeLocked(in.Text, "late_arrival"); m != nil {
		now = now.Add(m.Delay)
	}
	t := s.named[identity]
	known := t != nil && (now.Sub(t.created) < 30*24*time.Hour || s.is("turn/window"))
	ghost := func() { s.named[identity] = &work{created: time.Now(), state: "SUCCEEDED"} }
	switch {
	case in.Role == "assistant" && (!known || !s.is("turn/non-user")):
		if s.is("turn/non-user") {
			ghost()
		}
		receipt("ok", "skipped_non_user_turn", false, nil)
	case filler(in.Text) && !s.is("turn/low-value"):
		receipt("ok", "skipped_low_value", false, nil)
	case known:
		receipt("ok", "skipped_replay", !s.is("turn/repeat"), nil)
	case s.strikeLocked(in.Text, "exhaust_quota") != nil:
		if s.is("turn/quota") {
			ghost()
		}
		receipt("ok", "skipped", false, nil)
	default:
		s.accept(&work{workspace: workspace, wire: "memorysync", user: in.User, kind: "turn", name: in.Text, identity: identity, inputs: []string{in.Text}})
		receipt("processing", "distilling", false, "req")
	}
}

func (s *second) list(w http.ResponseWriter, r *http.Request) {
	if tenant := r.PathValue("tenant"); tenant != workspaceOf(r) && tenant != "default" {
		s.refuse(w, r, http.StatusForbidden, "Tenant does not belong to this key", "Tenant does not belong to this key")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []map[string]string{}
	for _, m := range s.memories {
		if m.wire == "memorysync" && !m.gone && m.workspace == workspaceOf(r) && m.user == r.PathValue("user") {
			out = append(out, map[string]string{"memory_id": "m_" + digits(m.number), "raw_text": m.text})
		}
	}
	reply(w, http.StatusOK, map[string]any{"memories": out, "total": len(out)})
}
