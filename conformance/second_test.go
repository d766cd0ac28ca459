package conformance_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/conformance"
)

// second is a server of the protocol that shares no line with the reference
// server: a mutex, maps, and the pages of the protocol. It is small enough to
// be read at one sitting, and breaks one promise at a time: broken is the name
// of the check whose promise it does not keep, "" when it keeps all.
type second struct {
	broken string
	url    string
	client *http.Client

	mu        sync.Mutex
	count     int
	tasks     []*work
	named     map[string]*work // by identity
	memories  []*memory
	deletions map[string]int
	faults    []*mishap
	limited   bool
	looked    map[string]int
}

// The second server's keys and workspaces.
const (
	msKey, otherMSKey = "ms_test_second", "ms_test_other"
	fmKey, otherFMKey = "fm_second", "fm_other"
)

var workspaces = map[string]string{msKey: "one", fmKey: "one", otherMSKey: "two", otherFMKey: "two"}

// memory is one stored record.
type memory struct {
	id, workspace, wire, user, text string
	number                          int
	gone                            bool
}

// newSecond starts a second server that breaks a promise.
func newSecond(t *testing.T, broken string) *second {
	t.Helper()
	s := &second{broken: broken, named: map[string]*work{}, deletions: map[string]int{}, looked: map[string]int{}}
	mux := http.NewServeMux()
	s.memorySyncRoutes(mux)
	s.fishMemRoutes(mux)
	s.controlRoutes(mux)
	srv := httptest.NewServer(s.outside(mux))
	t.Cleanup(srv.Close)
	t.Cleanup(s.stop)
	s.url, s.client = srv.URL, srv.Client()
	return s
}

func (s *second) config() conformance.Config {
	return conformance.Config{
		MemorySync: conformance.Endpoint{URL: s.url, Key: msKey}, OtherMemorySyncKey: otherMSKey,
		FishMem: conformance.Endpoint{URL: s.url, Key: fmKey}, OtherFishMemKey: otherFMKey,
		ControlURL: s.url, Patience: 15 * time.Second,
	}
}

// is says that this promise is the one to break.
func (s *second) is(check string) bool { return s.broken == check }

// id is a new number; it is called with mu held.
func (s *second) id() int {
	s.count++
	return s.count
}

// outside is what every request passes: the request id, the key, and faults
// that strike before or after the work.
func (s *second) outside(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/_control/") {
			next.ServeHTTP(w, r)
			return
		}
		s.mu.Lock()
		id := fmt.Sprintf("req_%d", s.id())
		s.mu.Unlock()
		if !s.is("wire/request-id") || fishMem(r) {
			w.Header().Set("X-Request-ID", id)
		}
		if why := s.unknownKey(r); why != "" {
			s.refuse(w, r, http.StatusUnauthorized, why, why)
			return
		}
		body := read(r)
		name := identityOf(r, body)
		if m := s.strike(name, "status"); m != nil {
			s.throttled(w, r, m)
			return
		}
		if s.is("wire/retry-after") && r.URL.Path == "/v1/events" && s.once() {
			s.refuse(w, r, http.StatusTooManyRequests, "RATE_LIMITED", "too many requests")
			return
		}
		lost := s.strike(name, "drop_response")
		if lost == nil {
			next.ServeHTTP(w, r.WithContext(with(r, body)))
			return
		}
		next.ServeHTTP(httptest.NewRecorder(), r.WithContext(with(r, body)))
		if (s.is("add/lost-answer") && !fishMem(r)) || (s.is("accept/lost-answer") && fishMem(r)) {
			s.forgetIdentity(name)
		}
		panic(http.ErrAbortHandler)
	})
}

// once is true the first time.
func (s *second) once() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.limited
	s.limited = true
	return first
}

func (s *second) unknownKey(r *http.Request) string {
	if fishMem(r) {
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok || workspaces[token] == "" || strings.HasPrefix(token, "ms_") {
			return "INVALID_API_KEY"
		}
		return ""
	}
	if r.Header.Get("Authorization") != "" && !s.is("errors/memorysync-auth") {
		return "Invalid API key"
	}
	if key := r.Header.Get("X-API-Key"); workspaces[key] == "" || strings.HasPrefix(key, "fm_") {
		return "Invalid API key"
	}
	return ""
}

func (s *second) throttled(w http.ResponseWriter, r *http.Request, m *mishap) {
	w.Header().Set("Retry-After", m.RetryAfter)
	if fishMem(r) {
		code := "RATE_LIMITED"
		if s.is("errors/fishmem-rate") {
			code = "TOO_MANY"
		}
		s.refuse(w, r, m.Code, code, "too many requests")
		return
	}
	inner := map[string]any{"code": "RATE_LIMIT_EXCEEDED", "message": "Rate limit exceeded."}
	if !s.is("errors/memorysync-rate") {
		inner["retry_after"] = json.Number(m.RetryAfter)
	}
	reply(w, m.Code, map[string]any{"error": inner})
}

// refuse is an error in the shape of its wire.
func (s *second) refuse(w http.ResponseWriter, r *http.Request, status int, code, message string) {
	if fishMem(r) {
		if status == http.StatusUnauthorized && s.is("errors/fishmem-auth") {
			status = http.StatusForbidden
		}
		id := w.Header().Get("X-Request-ID")
		if s.is("errors/fishmem-shape") {
			id = "another"
		}
		reply(w, status, map[string]string{"code": code, "message": message, "request_id": id})
		return
	}
	if code == message {
		if status == http.StatusNotFound && s.is("wire/error-body") {
			http.Error(w, "not found", status)
			return
		}
		reply(w, status, map[string]string{"detail": message})
		return
	}
	reply(w, status, map[string]any{"error": map[string]string{"code": code, "message": message}, "request_id": w.Header().Get("X-Request-ID")})
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func fishMem(r *http.Request) bool {
	return slices.ContainsFunc([]string{"/v1/memories", "/v1/events", "/v1/operations", "/v1/usage"}, func(p string) bool {
		return r.URL.Path == p || strings.HasPrefix(r.URL.Path, p+"/")
	})
}

func workspaceOf(r *http.Request) string {
	if fishMem(r) {
		return workspaces[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	}
	return workspaces[r.Header.Get("X-API-Key")]
}

// race is the gap of a server that looks for an identity first and writes it
// later: it lasts until a twin has looked too, or shortly when none comes. mu is
// held before and after.
func (s *second) race(identity string) {
	s.looked[identity]++
	for range 100 {
		twins := s.looked[identity]
		s.mu.Unlock()
		if twins > 1 {
			s.mu.Lock()
			return
		}
		<-time.After(5 * time.Millisecond)
		s.mu.Lock()
	}
}

// stop ends what still runs.
func (s *second) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tasks {
		t.turn++ // whoever runs it has lost it
		t.state = "STOPPED"
	}
	for _, m := range s.faults {
		m.let()
	}
}
