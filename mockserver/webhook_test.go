package mockserver_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/mockserver"
)

// subscriber keeps what it was told and answers with a status.
type subscriber struct {
	url string

	mu       sync.Mutex
	status   int
	ids      []string // of the messages, as they came
	numbers  map[string]bool
	projects map[string]bool
	came     chan struct{}
}

func newSubscriber(t *testing.T, status int) *subscriber {
	t.Helper()
	s := &subscriber{status: status, numbers: map[string]bool{}, projects: map[string]bool{}, came: make(chan struct{}, 1000)}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID      string `json:"id"`
			Project string `json:"project_id"`
		}
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &m)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ids = append(s.ids, m.ID)
		s.numbers[r.Header.Get("X-Fishmem-Delivery")] = true
		s.projects[m.Project] = true
		w.WriteHeader(s.status)
		s.came <- struct{}{}
	}))
	t.Cleanup(srv.Close)
	s.url = srv.URL
	return s
}

func (s *subscriber) told(t *testing.T, n int) []string {
	t.Helper()
	for range n {
		select {
		case <-s.came:
		case <-t.Context().Done():
			t.Fatal("a message did not come")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids
}

// settled waits until no message waits any more.
func settled(t *testing.T, srv *mockserver.Server, n int) []mockserver.Delivery {
	t.Helper()
	for {
		ended := 0
		all := srv.Deliveries()
		for _, d := range all {
			if d.State != "waiting" {
				ended++
			}
		}
		if ended >= n {
			return all
		}
		select {
		case <-time.After(time.Millisecond):
		case <-t.Context().Done():
			t.Fatalf("%d of %d messages ended", ended, n)
		}
	}
}

func TestAMessageIsSentFiveTimesUnderOneIdAndGivenUp(t *testing.T) {
	t.Parallel()
	to := newSubscriber(t, http.StatusInternalServerError)
	srv := mockserver.Run(t, mockserver.Webhook(to.url, "s"))
	c := newCaller(t, srv)
	id := c.do("POST", "/v1/memories", `{"content":"My team ships releases every Thursday.","user_id":"acme"}`, "Idempotency-Key", "k").fields()["event_id"].(string)
	d := settled(t, srv, 1)[0]
	if d.State != "given_up" || d.Attempts != 5 || d.Status != 500 || d.EventID != id {
		t.Errorf("%+v", d)
	}
	for _, got := range to.told(t, 5) {
		if got != "memory_add:"+id {
			t.Errorf("a message with the id %q", got)
		}
	}
	if len(to.numbers) != 1 || !to.numbers[d.ID] {
		t.Errorf("deliveries %v of one message", to.numbers)
	}
}

func TestMessagesAreOfOneWorkspaceAndOfInferredWritesAlone(t *testing.T) {
	t.Parallel()
	to, other := newSubscriber(t, 200), newSubscriber(t, 204)
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	key := srv.NewKey("other", "fishmem", "memory:read", "memory:write", "operations:read")
	// Also over the control API, for tests in other languages.
	for body, want := range map[string]int{`{"url":"` + to.url + `","secret":"s"}`: 204, `{"url":"nonsense","secret":"s"}`: 400, `{"url":"http://a"}`: 400} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, srv.URL+"/_control/webhooks", strings.NewReader(body))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("PUT /_control/webhooks %s: %d", body, resp.StatusCode)
		}
	}
	srv.SetWebhook("other", other.url, "s")
	c.do("POST", "/memory/add", `{"text":"My team ships releases every Thursday.","client_ref":"r"}`)
	c.do("POST", "/v1/memories", `{"content":"Kept as it is.","user_id":"acme","infer":false}`)
	mine := c.do("POST", "/v1/memories", `{"content":"Our office moved from Bristol to Cardiff.","user_id":"acme"}`, "Idempotency-Key", "k").fields()["event_id"].(string)
	theirs := c.do("POST", "/v1/memories", `{"content":"Our office moved from Bristol to Cardiff.","user_id":"acme"}`, "Idempotency-Key", "k", "Authorization", "Bearer "+key).fields()["event_id"].(string)
	if ids := to.told(t, 1); len(ids) != 1 || ids[0] != "memory_add:"+mine || !to.projects[srv.Workspace] {
		t.Errorf("told %q", ids)
	}
	if ids := other.told(t, 1); len(ids) != 1 || ids[0] != "memory_add:"+theirs || !other.projects["other"] {
		t.Errorf("the other workspace was told %q", ids)
	}
	srv.SetWebhook("", "", "") // ended
	c.ended(c.do("POST", "/v1/memories", `{"content":"I prefer tea over coffee.","user_id":"acme"}`, "Idempotency-Key", "k2").fields()["event_id"].(string))
	if d := settled(t, srv, 2); len(d) != 2 {
		t.Errorf("%d messages", len(d))
	}
}

// What ended shortly before a start is told again under the same id; what ended
// long ago is not.
func TestAStartTellsTheLastTenMinutesAgain(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	write := func(key string) string {
		id := c.do("POST", "/v1/memories", `{"content":"I prefer `+key+` over coffee.","user_id":"`+key+`"}`, "Idempotency-Key", key).fields()["event_id"].(string)
		c.ended(id)
		return "memory_add:" + id
	}
	for _, key := range []string{"one", "two", "three", "four", "five"} {
		write(key)
	}
	srv.Advance(11 * time.Minute)
	want := map[string]bool{write("six"): true, write("seven"): true}
	snapshot, err := srv.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	to := newSubscriber(t, 200)
	srv.SetWebhook("", to.url, "s")
	first := to.told(t, 2)
	settled(t, srv, 2)
	if err := srv.Restore(snapshot); err != nil { // as another process that finds the store
		t.Fatal(err)
	}
	all := to.told(t, 2)
	if len(first) != 2 || len(all) != 4 {
		t.Fatalf("told %q, then %q", first, all)
	}
	for _, id := range all {
		if !want[id] {
			t.Errorf("told of %q", id)
		}
	}
}
