package conformance

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// watch sees every answer of a run. What it holds the server to costs no call.
type watch struct {
	secrets []string

	mu   sync.Mutex
	seen int
	bad  map[string]string // by check: the first answer that broke it
}

func watched() []*check {
	return []*check{
		{name: "wire/request-id", promise: "Every answer carries X-Request-ID", point: "MemorySync 1.2, FishMem 1.2"},
		{name: "wire/error-body", promise: "Every refusal is a JSON object that says why", point: "MemorySync 3.1, FishMem 3"},
		{name: "wire/secrets", promise: "No answer tells the API key back", point: "MemorySync 1.1, FishMem 1.1"},
		{name: "wire/retry-after", promise: "Every refusal by a rate limit says when to come back", point: "MemorySync 1.2, FishMem 1.2"},
	}
}

func (w *watch) see(r request, a answer) {
	if a.err != nil || a.status == 0 {
		return // no whole answer
	}
	if strings.HasPrefix(r.path, "/_control/") {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen++
	w.hold("wire/request-id", a.header.Get("X-Request-ID") != "", r, a)
	if a.status >= 400 {
		w.hold("wire/error-body", a.fields != nil && says(a), r, a)
	}
	for _, secret := range w.secrets {
		if secret != "" {
			w.hold("wire/secrets", !strings.Contains(string(a.body), secret), r, answer{status: a.status})
		}
	}
	if a.status == http.StatusTooManyRequests && strings.HasPrefix(a.code(), "RATE_LIMIT") {
		w.hold("wire/retry-after", hint(a), r, a)
	}
}

func (w *watch) hold(name string, ok bool, r request, a answer) {
	if ok || w.bad[name] != "" {
		return
	}
	if w.bad == nil {
		w.bad = map[string]string{}
	}
	path, _, _ := strings.Cut(r.path, "?")
	w.bad[name] = r.method + " " + path + " answers " + a.String()
}

// says tells whether one of the error shapes holds a word for people.
func says(a answer) bool {
	for _, field := range []string{"message", "detail", "error", "reason"} {
		switch v := a.fields[field].(type) {
		case string:
			if v != "" {
				return true
			}
		case map[string]any:
			if s, ok := v["message"].(string); ok && s != "" {
				return true
			}
		case []any:
			if len(v) > 0 {
				return true
			}
		}
	}
	return false
}

// hint tells whether an answer says when to come back, in any of its forms.
func hint(a answer) bool {
	if h := a.header.Get("Retry-After"); h != "" {
		n, err := strconv.ParseFloat(h, 64)
		_, dateErr := time.Parse(http.TimeFormat, h)
		return (err == nil && n >= 0) || dateErr == nil
	}
	if e, ok := a.fields["error"].(map[string]any); ok {
		_, ok := e["retry_after"].(json.Number)
		return ok
	}
	return false
}

// results are the checks as they stand at the end of a run.
func (w *watch) results(cfg Config) []Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Result
	for _, c := range watched() {
		if !cfg.wants(c.name) {
			continue
		}
		r := Result{Name: c.name, Promise: c.promise, Point: c.point, Outcome: Passed}
		if why := w.bad[c.name]; why != "" {
			r.Outcome, r.Why = Failed, why
		} else if w.seen == 0 {
			r.Outcome, r.Why = NotRun, "no answer was seen"
		}
		out = append(out, r)
	}
	return out
}
