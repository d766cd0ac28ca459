package memwrite_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/mockserver"
)

// wire talks to the server in plain HTTP, as any client in any language would,
// so that what the articles print is held against bytes and not against what
// the SDK makes of them.
type wire struct {
	t   *testing.T
	srv *mockserver.Server
}

// said is one answer as it came.
type said struct {
	status int
	header http.Header
	body   []byte
}

func onTheWire(t *testing.T, srv *mockserver.Server) wire { return wire{t, srv} }

// try sends one request and gives back its error, for the tests in which the
// answer is meant to get lost.
func (w wire) try(method, path, body string, header ...string) (said, error) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.srv.URL+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	// A connection of its own: net/http sends a request with an
	// Idempotency-Key again by itself when a reused one breaks.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return said{}, err
	}
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	return said{res.StatusCode, res.Header, all}, err
}

func (w wire) do(method, path, body string, header ...string) said {
	w.t.Helper()
	got, err := w.try(method, path, body, header...)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	return got
}

// memorySync sends a MemorySync call for the articles' customer.
func (w wire) memorySync(method, path, body string) said {
	w.t.Helper()
	return w.do(method, path, body, "X-API-Key", w.srv.MemorySyncKey, "X-End-User-ID", customer)
}

func (w wire) add(body string) said {
	w.t.Helper()
	return w.memorySync(http.MethodPost, "/memory/add", body)
}

// tryAdd is add where the answer may get lost. It is safe to use from several
// goroutines.
func (w wire) tryAdd(body string) (said, error) {
	return w.try(http.MethodPost, "/memory/add", body, "X-API-Key", w.srv.MemorySyncKey, "X-End-User-ID", customer)
}

func (w wire) turn(body string) said {
	w.t.Helper()
	return w.do(http.MethodPost, "/v1/memory/add_turn", body, "X-API-Key", w.srv.MemorySyncKey)
}

// memories sends a FishMem write under a key.
func (w wire) memories(body, key string) said {
	w.t.Helper()
	return w.do(http.MethodPost, "/v1/memories", body, "Authorization", "Bearer "+w.srv.FishMemKey, "Idempotency-Key", key)
}

// terminal reads an event until it has ended. The server holds each read until
// something changes, so this asks a handful of times.
func (w wire) terminal(id string) map[string]any {
	w.t.Helper()
	for range 50 {
		got := w.fields(w.do(http.MethodGet, "/v1/events/"+id, "",
			"Authorization", "Bearer "+w.srv.FishMemKey, "Prefer", "wait=25").want(w.t, http.StatusOK))
		if got["status"] == "SUCCEEDED" || got["status"] == "FAILED" {
			return got
		}
	}
	w.t.Fatalf("event %s did not end", id)
	return nil
}

// fields decodes an answer's object. Numbers keep their digits.
func (w wire) fields(s said) map[string]any {
	w.t.Helper()
	dec := json.NewDecoder(strings.NewReader(string(s.body)))
	dec.UseNumber()
	var m map[string]any
	if err := dec.Decode(&m); err != nil {
		w.t.Fatalf("status %d, body %q: %v", s.status, s.body, err)
	}
	return m
}

func (s said) want(t *testing.T, status int) said {
	t.Helper()
	if s.status != status {
		t.Fatalf("status %d, want %d; body %s", s.status, status, s.body)
	}
	return s
}

// sameJSON compares two objects field by field: a missing field, one too many
// and a null in place of an absent field are all differences.
func sameJSON(t *testing.T, got said, want string) {
	t.Helper()
	var g, w map[string]json.RawMessage
	if err := json.Unmarshal(got.body, &g); err != nil {
		t.Fatalf("body %q: %v", got.body, err)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	for name, value := range w {
		if _, ok := g[name]; !ok {
			t.Errorf("field %s is missing, want %s", name, value)
			continue
		}
		if a, b := compact(g[name]), compact(value); a != b {
			t.Errorf("field %s is %s, want %s", name, a, b)
		}
	}
	for name, value := range g {
		if _, ok := w[name]; !ok {
			t.Errorf("field %s = %s is not in the article", name, value)
		}
	}
}

func compact(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	out, _ := json.Marshal(v)
	return string(out)
}

// wantRecords holds the memories the server has against texts, in any order.
func wantRecords(t *testing.T, srv *mockserver.Server, texts ...string) {
	t.Helper()
	var have []string
	for _, r := range srv.Records() {
		if !r.Deleted {
			have = append(have, r.Text)
		}
	}
	slices.Sort(have)
	slices.Sort(texts)
	if !slices.Equal(have, texts) {
		t.Errorf("the server holds %q, want %q", have, texts)
	}
}

// dropAnswer makes the server lose its next answer after the work is done.
func dropAnswer(t *testing.T, srv *mockserver.Server) {
	t.Helper()
	dropped := srv.Arm(mockserver.Fault{Kind: mockserver.DropResponse})
	t.Cleanup(func() {
		if dropped.Fired() != 1 {
			t.Errorf("%d answers were lost, want 1", dropped.Fired())
		}
	})
}

func mustAdd(t *testing.T, client *memwrite.Client, req memwrite.AddRequest) *memwrite.AddResult {
	t.Helper()
	got, err := client.Add(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func mustTurn(t *testing.T, client *memwrite.Client, req memwrite.TurnRequest) *memwrite.TurnReceipt {
	t.Helper()
	got, err := client.AddTurn(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func wantAlready(t *testing.T, got *memwrite.AddResult, id int64) {
	t.Helper()
	if got.Outcome != memwrite.AlreadyIngested || !slices.Equal(got.MemoryIDs, []int64{id}) {
		t.Fatalf("got %+v, want already ingested as %d", got, id)
	}
}
