package conformance_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// mishap is an armed fault of the second server.
type mishap struct {
	Kind       string        `json:"kind"`
	Point      string        `json:"point"`
	Key        string        `json:"key"`
	Times      int           `json:"times"`
	Code       int           `json:"code"`
	RetryAfter string        `json:"retry_after"`
	Delay      time.Duration `json:"delay_ns"`

	fired int
	off   bool
	gate  chan struct{}
	open  sync.Once
}

func (m *mishap) let() { m.open.Do(func() { close(m.gate) }) }

func (s *second) strike(name, kind string) *mishap { return s.strikeAt(name, kind, "") }

func (s *second) strikeAt(name, kind, point string) *mishap {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(name, kind, point)
}

func (s *second) strikeLocked(name, kind string) *mishap { return s.find(name, kind, "") }

func (s *second) find(name, kind, point string) *mishap {
	for _, m := range s.faults {
		if m.off || m.Kind != kind || m.Key != name || name == "" || (point != "" && m.Point != point) {
			continue
		}
		m.fired++
		if m.Times >= 0 && m.fired >= max(m.Times, 1) {
			m.off = true
		}
		return m
	}
	return nil
}

func (s *second) controlRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /_control/faults", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		armed := []int{}
		for i, m := range s.faults {
			if !m.off {
				armed = append(armed, i+1)
			}
		}
		reply(w, http.StatusOK, armed)
	})
	mux.HandleFunc("POST /_control/faults", func(w http.ResponseWriter, r *http.Request) {
		m := &mishap{gate: make(chan struct{})}
		_ = json.NewDecoder(r.Body).Decode(m)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.faults = append(s.faults, m)
		reply(w, http.StatusCreated, map[string]int{"number": len(s.faults)})
	})
	each := func(do func(*mishap)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			n, _ := strconv.Atoi(r.PathValue("n"))
			s.mu.Lock()
			defer s.mu.Unlock()
			if n >= 1 && n <= len(s.faults) {
				do(s.faults[n-1])
			}
			w.WriteHeader(http.StatusNoContent)
		}
	}
	mux.HandleFunc("DELETE /_control/faults/{n}", each(func(m *mishap) { m.off = true; m.let() }))
	mux.HandleFunc("POST /_control/faults/{n}/release", each((*mishap).let))
	mux.HandleFunc("GET /_control/ledger", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		units := map[string]int{"reserved": 0, "settled": 0, "released": 0}
		for _, t := range s.tasks {
			if t.name == r.URL.Query().Get("key") {
				units["reserved"] += t.reserved
				units["settled"] += t.settled
				units["released"] += t.released
			}
		}
		reply(w, http.StatusOK, map[string]any{"units": units})
	})
}

type bodyKey struct{}

// with carries the body that was read ahead.
func with(r *http.Request, body []byte) context.Context {
	return context.WithValue(r.Context(), bodyKey{}, body)
}

func bodyOf(r *http.Request) []byte {
	b, _ := r.Context().Value(bodyKey{}).([]byte)
	return b
}

func read(r *http.Request) []byte {
	b, _ := io.ReadAll(r.Body)
	return b
}

// identityOf is what a fault is armed for: the key, the client_ref or the text
// of a turn.
func identityOf(r *http.Request, body []byte) string {
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		return key
	}
	var in struct {
		Ref  string `json:"client_ref"`
		Text string `json:"text"`
	}
	_ = json.Unmarshal(body, &in)
	if in.Ref != "" || r.URL.Path == "/memory/add" {
		return in.Ref
	}
	return in.Text
}

// forgetIdentity frees the identity of the tasks under a name.
func (s *second) forgetIdentity(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tasks {
		if t.name == name {
			delete(s.named, t.identity)
		}
	}
}

func digits(n int) string { return strconv.Itoa(n) }
