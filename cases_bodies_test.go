package memwrite_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
)

func TestS47_AnyEnvelopeIsOurError(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"error":"x"}`, `"x"`, `[]`, `null`, ``, `{"err`, `{"error":{"code":"C","message":"m"}}`, `{"error":null}`, `12`} {
		for _, status := range []int{200, 400, 429, 503} {
			srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Request-ID", "r-1")
				respond(w, status, body)
			})
			_, err := srv.client(t).Add(t.Context(), theNote())
			var e *memwrite.Error
			if !errors.As(err, &e) || e.Status != status || e.RequestID != "r-1" {
				t.Errorf("%d %s: %v", status, body, err)
			}
		}
	}
}

func TestS48_HTMLIsNeverASuccess(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 403, 502} {
		bothWays(t, func(t *testing.T, opt memwrite.Option) {
			srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				w.WriteHeader(status)
				io.WriteString(w, "<html>"+strings.Repeat("x", 4000))
			})
			_, err := srv.client(t, opt).Add(t.Context(), theNote())
			var e *memwrite.Error
			if !errors.As(err, &e) || e.Status != status || len(e.Snippet) > 1024 || strings.Contains(err.Error(), "invalid character") {
				t.Error(err)
			}
		})
	}
}

// An error without end is read up to a limit and a second longer; a success
// above its limit says so, and is not taken for broken JSON.
func TestS49_BodiesAreBoundedAndSaySo(t *testing.T) {
	t.Parallel()
	endless := func(status int) func(int, http.ResponseWriter, *http.Request) {
		return func(_ int, w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			for chunk := make([]byte, 64<<10); r.Context().Err() == nil; {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}
	}
	bothWays(t, func(t *testing.T, opt memwrite.Option) {
		p := quick()
		p.MaxTries, p.MaxAnswer = 2, 1<<20
		srv := listen(t, endless(500))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := srv.client(t, opt, memwrite.WithRetryPolicy(p)).Add(t.Context(), theNote())
		runtime.ReadMemStats(&after)
		var e *memwrite.Error
		if !errors.Is(err, memwrite.ErrServer) || !errors.As(err, &e) || e.Tries != 2 || len(e.Snippet) > 1024 {
			t.Error(err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 256<<20 { // other tests run beside it
			t.Errorf("%d MB for an error", used>>20)
		}
		srv = listen(t, endless(200))
		_, err = srv.client(t, opt, memwrite.WithRetryPolicy(p)).Add(t.Context(), theNote())
		if !errors.Is(err, memwrite.ErrTooLarge) || !errors.As(err, &e) || e.Tries != 1 || !strings.Contains(err.Error(), "larger than the limit") {
			t.Error(err)
		}
	})
}

func TestS50_ATruncatedSuccessIsTriedAgain(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, opt memwrite.Option) {
		srv := listen(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			if n == 1 {
				respond(w, 201, `{"a":1`)
				return
			}
			respond(w, 200, `{"status":"skipped","reason":"already_ingested","memory_ids":[1],"client_ref":"note-0001"}`)
		})
		res, err := srv.client(t, opt).Add(t.Context(), theNote())
		if err != nil || res.Tries != 2 || res.Outcome != memwrite.AlreadyIngested {
			t.Error(res, err)
		}
	})
}

// Every open set of words gains one, and every object a field. What the client
// made of them is still there when it is written and read again.
func TestS51_NewWordsAndFieldsDecode(t *testing.T) {
	t.Parallel()
	const event = `{"id":"task_1","status":"ZZ_NEW","event_type":"ZZ_NEW","failure_class":"zz_new","error_code":"ZZ_NEW","zz":{"a":[1]},` +
		`"scope":{"user_id":"sam","zz":1},"results":[{"id":"m1","memory":"x","event":"ZZ_NEW","zz":null}],` +
		`"write_summary":{"outcome":"ZZ_NEW","planned":1,"zz":[]},"attempts":1,"max_attempts":3}`
	answers := map[string]string{
		"POST /memory/add":                 `{"id":1,"text":"t","tier":"zz_new","memory_type":"zz_new","event_type":"zz_new","source":"zz_new","zz":{"zz":[{}]}}`,
		"POST /v1/memory/add_turn":         `{"status":"zz_new","processing_status":"zz_new","memory_id":null,"zz":true}`,
		"POST /v1/memories":                `{"event_id":"task_1","status":"ZZ_NEW","message":"zz","zz":1}`,
		"GET /v1/events/task_1":            event,
		"GET /v1/events":                   `{"results":[` + event + `],"next_cursor":null,"zz":1}`,
		"GET /v1/operations/task_1":        `{"id":"task_1","kind":"zz_new","status":"zz_new","failure_class":"zz_new","attempts":1,"zz":1}`,
		"GET /v1/memories/m1":              `{"id":"m1","memory":"x","memory_type":"zz_new","zz":1}`,
		"POST /v1/operations/task_1/retry": `{"id":"task_1","kind":"zz_new","status":"zz_new","zz":1}`,
		"POST /v1/memories/search":         `{"results":[{"id":"m1","memory_type":"zz_new","zz":1}],"zz":1}`,
		"POST /memory/query":               `{"memories":[{"id":1,"tier":"zz_new","zz":1}],"zz":1}`,
		"GET /memory/1":                    `{"id":1,"tier":"zz_new","zz":1}`,
		"DELETE /memory/forget":            `{"deleted":1,"zz":1}`,
	}
	srv := listen(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		respond(w, 200, answers[r.Method+" "+r.URL.Path])
	})
	c, ctx := srv.client(t), t.Context()
	same := func(what string, v any, err error, want string) {
		t.Helper()
		b, jsonErr := json.Marshal(v)
		if err != nil || jsonErr != nil || strings.Count(strings.ToLower(string(b)), "zz_new") < strings.Count(strings.ToLower(want), "zz_new") {
			t.Errorf("%s: %v, %s", what, err, b)
		}
	}
	ev, err := c.Event(ctx, "task_1")
	same("Event", ev, err, event)
	again := new(memwrite.Event)
	if b, err := json.Marshal(ev); err != nil || json.Unmarshal(b, again) != nil || !reflect.DeepEqual(ev, again) {
		t.Errorf("%+v is not %+v", again, ev)
	}
	for ev, err := range c.Events(ctx, memwrite.EventFilter{}) {
		same("Events", ev, err, event)
	}
	op, err := c.Operation(ctx, "task_1")
	same("Operation", op, err, answers["GET /v1/operations/task_1"])
	redriven, err := c.Redrive(ctx, "task_1")
	if err != nil || redriven.Status != "ZZ_NEW" {
		t.Error(redriven, err)
	}
	added, err := c.Add(ctx, theNote())
	if err != nil {
		t.Fatal(err)
	}
	same("Add", added.Memory, err, answers["POST /memory/add"])
	turn, err := c.AddTurn(ctx, theTurn())
	same("AddTurn", turn, err, answers["POST /v1/memory/add_turn"])
	receipt, err := c.AddAsync(ctx, theInferred())
	same("AddAsync", receipt, err, answers["POST /v1/memories"])
	record, err := c.Record(ctx, "m1")
	same("Record", record, err, answers["GET /v1/memories/m1"])
	memory, err := c.Memory(ctx, "acme", 1)
	same("Memory", memory, err, answers["GET /memory/1"])
	found, err := c.Search(ctx, memwrite.SearchRequest{Scope: memwrite.Scope{UserID: "sam"}, Query: "which day"})
	same("Search", found, err, "zz_new")
	queried, err := c.Query(ctx, memwrite.QueryRequest{EndUserID: "acme", Query: "which day"})
	same("Query", queried, err, "zz_new")
	if _, err := c.Forget(ctx, memwrite.ForgetRequest{EndUserID: "acme", MemoryIDs: []int64{1}}); err != nil {
		t.Error(err)
	}
}

func TestS52_NoContentWithAContentType(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(204)
	})
	_, err := srv.client(t).Add(t.Context(), theNote())
	var e *memwrite.Error
	if !errors.As(err, &e) || e.Status != 204 || !errors.Is(err, memwrite.ErrUnknownOutcome) {
		t.Error(err)
	}
}

func TestS54_ARedirectedWriteIsAnErrorAndNeverAGET(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s arrived with key %q", r.Method, r.Header.Get("X-API-Key"))
	}))
	t.Cleanup(other.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		srv := listen(t, func(_ int, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+"/memory/add", status)
		})
		_, err := srv.client(t).Add(t.Context(), theNote())
		var e *memwrite.Error
		if !errors.Is(err, memwrite.ErrRedirect) || !errors.As(err, &e) || e.Target != other.URL+"/memory/add" || len(srv.requests()) != 1 {
			t.Errorf("%d: %v", status, err)
		}
	}
}

func TestS57_ErrorsSpeakInFieldsAndMethods(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After-Ms", "7")
		respond(w, 503, "")
	})
	_, err := srv.client(t).Add(t.Context(), theNote())
	var generic interface {
		StatusCode() int
		Retryable() bool
		Temporary() bool
		Wait() time.Duration
	}
	if !errors.As(err, &generic) || generic.StatusCode() != 503 || !generic.Retryable() || !generic.Temporary() || generic.Wait() != 7*time.Millisecond {
		t.Error(err)
	}
	var e *memwrite.Error
	if !errors.As(err, &e) || e.Status != 503 || e.RetryAfter != generic.Wait() {
		t.Error(err)
	}
}
