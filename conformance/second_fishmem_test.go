package conformance_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
)

func (s *second) fishMemRoutes(mux *http.ServeMux) {
	mux.HandleFunc("POST /v1/memories", s.create)
	mux.HandleFunc("GET /v1/memories", s.listMemories)
	mux.HandleFunc("DELETE /v1/memories", s.deleteAll)
	mux.HandleFunc("GET /v1/memories/{id}", s.readMemory)
	mux.HandleFunc("DELETE /v1/memories/{id}", s.deleteMemory)
	mux.HandleFunc("GET /v1/events", s.events)
	mux.HandleFunc("GET /v1/events/{id}", s.event)
	mux.HandleFunc("GET /v1/operations/{id}", s.operation)
	mux.HandleFunc("POST /v1/operations/{id}/retry", s.retry)
	mux.HandleFunc("GET /v1/usage", func(w http.ResponseWriter, r *http.Request) {
		body := map[string]any{"credits": map[string]int{"settled": 0, "released": 0, "reserved": 0}}
		if s.is("wire/secrets") {
			body["key"] = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		}
		reply(w, http.StatusOK, body)
	})
}

// command is a write as it was sent.
type command struct {
	Content  string          `json:"content"`
	User     string          `json:"user_id"`
	Agent    json.RawMessage `json:"agent_id"`
	Infer    *bool           `json:"infer"`
	Date     string          `json:"event_date"`
	Metadata json.RawMessage `json:"metadata"`
	Messages []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"messages"`
}

// parse reads a command and what it means, or gives the code of its refusal.
func (s *second) parse(body []byte) (c command, fingerprint, code string) {
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) || json.Unmarshal(body, &c) != nil {
		return c, "", "INVALID_BODY"
	}
	c.User = strings.TrimSpace(c.User)
	null := string(c.Agent) == "null" && !s.is("errors/fishmem-input")
	if null || c.User == "" || (c.Content == "" && len(c.Messages) == 0) || len(c.Content) > 249_000 ||
		(c.Date != "" && !strings.HasSuffix(c.Date, "Z")) {
		return c, "", "INVALID_REQUEST"
	}
	d := json.NewDecoder(bytes.NewReader(c.Metadata))
	if !s.is("accept/spelling") {
		d.UseNumber()
	}
	var metadata any
	_ = d.Decode(&metadata)
	mode := c.Infer == nil || *c.Infer
	meaning, _ := json.Marshal([]any{c.User, c.Content, c.Messages, mode, c.Date, metadata})
	if s.is("accept/same-meaning") {
		meaning = body
	}
	return c, string(meaning), ""
}

func (s *second) create(w http.ResponseWriter, r *http.Request) {
	c, fingerprint, code := s.parse(bodyOf(r))
	keys := r.Header.Values("Idempotency-Key")
	key, workspace := strings.TrimSpace(r.Header.Get("Idempotency-Key")), workspaceOf(r)
	identity := "key|" + workspace + "|" + key
	if s.is("isolation/key") {
		identity = "key|" + key
	}
	kind := "infer"
	if c.Infer != nil && !*c.Infer {
		kind = "verbatim"
		if s.is("accept/mode") {
			identity += "|verbatim"
		}
	}
	ghost := func() {
		s.mu.Lock()
		s.named[identity] = &work{fingerprint: "another"}
		s.mu.Unlock()
	}
	switch {
	case code != "":
		if s.is("accept/refused") {
			ghost()
		}
		s.refuse(w, r, http.StatusBadRequest, code, "the request is not valid")
		return
	case len(keys) == 0:
		s.refuse(w, r, http.StatusBadRequest, "IDEMPOTENCY_KEY_REQUIRED", "a key is required")
		return
	case key == "" || (len(key) > 200 && !s.is("accept/key-rules")):
		s.refuse(w, r, http.StatusBadRequest, "INVALID_IDEMPOTENCY_KEY", "a key is 1 to 200 characters")
		return
	case s.strike(key, "exhaust_credits") != nil:
		if s.is("accept/credits") {
			ghost()
		}
		s.refuse(w, r, http.StatusPaymentRequired, "INSUFFICIENT_CREDITS", "not enough credits")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t, replayed := s.named[identity]
	if s.is("accept/concurrent") && !replayed {
		s.race(identity)
	}
	if replayed && t.fingerprint != fingerprint {
		code := "IDEMPOTENCY_CONFLICT"
		if s.is("accept/conflict") {
			code = "CONFLICT"
		}
		s.refuse(w, r, http.StatusConflict, code, "the key was used for another command")
		return
	}
	if !replayed && kind == "infer" && s.is("accept/other-key") {
		for _, other := range s.tasks {
			if other.workspace == workspace && other.user == c.User && other.content == c.Content {
				t, replayed = other, true
			}
		}
	}
	if !replayed {
		t = &work{workspace: workspace, wire: "fishmem", user: c.User, kind: kind, name: key, identity: identity, fingerprint: fingerprint, content: c.Content}
		for _, m := range c.Messages {
			if m.Role == "user" || kind == "verbatim" {
				t.inputs = append(t.inputs, m.Content)
			}
		}
		if len(c.Messages) == 0 {
			t.inputs = []string{c.Content}
		}
		s.accept(t)
	} else if t.state == "SUCCEEDED" && s.is("billing/inferred") && kind == "infer" {
		t.reserved, t.settled = t.reserved+2, t.settled+2
	}
	if kind == "verbatim" {
		s.verbatim(w, t, replayed)
		return
	}
	if replayed && s.is("accept/repeat") && t.state == "SUCCEEDED" && t.run == 1 {
		t.state = "PENDING"
		t.settled -= 2
		t.change()
		go s.attempt(t)
	}
	state, status := t.state, http.StatusAccepted
	if replayed && state == "FAILED" && s.is("failed/replay") {
		state = "PENDING"
	}
	if s.is("accept/receipt") {
		status = http.StatusOK
	}
	reply(w, status, map[string]string{"message": "accepted", "status": state, "event_id": t.id})
}

// verbatim stores what was given, at once; mu is held.
func (s *second) verbatim(w http.ResponseWriter, t *work, replayed bool) {
	if !replayed {
		t.plan = append([]string{}, t.inputs...)
		if s.is("verbatim/exact") {
			for i := range t.plan {
				t.plan[i] = strings.TrimSpace(t.plan[i])
			}
		}
		s.store(t)
		t.state, t.settled = "SUCCEEDED", t.reserved
	}
	results := s.results(t)
	if replayed && s.is("verbatim/repeat") {
		results[0]["id"] = "mem_again"
	}
	reply(w, http.StatusOK, map[string]any{"results": results})
}

func (s *second) results(t *work) []map[string]string {
	out := []map[string]string{}
	for _, m := range t.stored {
		id := m.id
		if s.is("event/evidence") && t.kind == "infer" {
			id += "x" // names what is not there
		}
		out = append(out, map[string]string{"id": id, "memory": m.text, "event": "ADD"})
	}
	return out
}

func (s *second) listMemories(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []map[string]string{}
	for _, m := range s.of(workspaceOf(r), r.URL.Query().Get("user_id")) {
		out = append(out, map[string]string{"id": m.id, "memory": m.text})
	}
	reply(w, http.StatusOK, map[string]any{"results": out, "next_cursor": nil})
}

// of is what a FishMem user has; mu is held.
func (s *second) of(workspace, user string) []*memory {
	var out []*memory
	for _, m := range s.memories {
		if m.wire == "fishmem" && !m.gone && m.workspace == workspace && m.user == user {
			out = append(out, m)
		}
	}
	return out
}

func (s *second) deleteAll(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := workspaceOf(r) + "|" + r.Header.Get("Idempotency-Key")
	n, again := s.deletions[key]
	if !again || s.is("delete/all") {
		n = 0
		for _, m := range s.of(workspaceOf(r), r.URL.Query().Get("user_id")) {
			m.gone = true
			n++
		}
		s.deletions[key] = n
	}
	reply(w, http.StatusOK, map[string]int{"deleted": n})
}

func (s *second) readMemory(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.memories {
		if m.id == r.PathValue("id") && m.wire == "fishmem" && !m.gone && m.workspace == workspaceOf(r) {
			reply(w, http.StatusOK, map[string]string{"id": m.id, "memory": m.text})
			return
		}
	}
	code := "MEMORY_NOT_FOUND"
	if s.is("errors/fishmem-not-found") {
		code = "NOT_FOUND"
	}
	s.refuse(w, r, http.StatusNotFound, code, "no such memory")
}

func (s *second) deleteMemory(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := workspaceOf(r) + "|" + r.Header.Get("Idempotency-Key")
	_, again := s.deletions[key]
	found := again && !s.is("delete/memory")
	for _, m := range s.memories {
		if m.id == r.PathValue("id") && m.wire == "fishmem" && !m.gone && m.workspace == workspaceOf(r) {
			m.gone, found = true, true
		}
	}
	if !found {
		s.refuse(w, r, http.StatusNotFound, "MEMORY_NOT_FOUND", "no such memory")
		return
	}
	s.deletions[key] = 1
	reply(w, http.StatusOK, map[string]any{"id": r.PathValue("id"), "deleted": true})
}
