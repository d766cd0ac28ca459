package memwrite_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	memwrite "github.com/memwrite/memwrite-go"
)

func TestTrapAddDroppedByTheSilentQuotaIsAnError(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"status":"ok"}`, `{"status":"ok","skipped":true}`} {
		srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) { respond(w, 200, body) })
		res, err := srv.client(t).Add(t.Context(), theNote())
		if !errors.Is(err, memwrite.ErrQuotaExceeded) || res != nil || len(srv.requests()) != 1 {
			t.Errorf("%s: %+v, %v", body, res, err)
		}
		if v := memwrite.VerdictOf(err); v.Action != memwrite.Hold {
			t.Error(v)
		}
	}
}

func TestTrapATurnWithoutItsReplayKeyIsRefused(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		respond(w, 201, `{"memory_id":null,"status":"processing","processing_status":"distilling","request_id":"x"}`)
	})
	c := srv.client(t)
	for name, change := range map[string]func(*memwrite.TurnRequest){
		"speaker": func(r *memwrite.TurnRequest) { r.Speaker = "" },
		"time":    func(r *memwrite.TurnRequest) { r.OccurredAt = "" },
	} {
		req := theTurn()
		change(&req)
		if _, err := c.AddTurn(t.Context(), req); !errors.Is(err, memwrite.ErrInvalidInput) {
			t.Errorf("a turn without %s: %v", name, err)
		}
		req.AllowUnstable = true
		if _, err := c.AddTurn(t.Context(), req); err != nil {
			t.Errorf("a turn without %s that was meant: %v", name, err)
		}
	}
	for _, r := range srv.requests() { // nothing was stamped in its place
		if strings.Contains(r.body, `"speaker"`) && strings.Contains(r.body, `"occurred_at"`) {
			t.Error(r.body)
		}
	}
}

func TestTrapIdsAreOfThreeKinds(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == "DELETE":
			respond(w, 200, `{"deleted":1}`)
		case strings.HasPrefix(r.URL.Path, "/v1/memory/"):
			respond(w, 200, `{"memories":[{"memory_id":"m_66438","raw_text":"t","metadata":null,"created_at":"c"}],"total":1}`)
		default:
			respond(w, 200, `{"id":"a/b?c","memory":"t"}`)
		}
	})
	c := srv.client(t)
	if _, err := c.Forget(t.Context(), memwrite.ForgetRequest{EndUserID: "acme", MemoryIDs: []int64{66438}}); err != nil {
		t.Error(err)
	}
	facts, err := c.Facts(t.Context(), "default", "sam/../kim", 0)
	if err != nil || facts[0].MemoryID != "m_66438" {
		t.Error(facts, err)
	}
	if r, err := c.Record(t.Context(), "a/b?c"); err != nil || r.ID != "a/b?c" {
		t.Error(r, err)
	}
	reqs := srv.requests()
	if reqs[0].body != `{"memory_ids":[66438]}` {
		t.Error(reqs[0].body)
	}
	if reqs[1].path != "/v1/memory/default/sam/../kim/list" || reqs[2].path != "/v1/memories/a/b?c" { // decoded: one segment each on the wire
		t.Errorf("%q %q", reqs[1].path, reqs[2].path)
	}
}

func TestTrapAnInferredWriteGoesOutWithNothingAdded(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		respond(w, 202, `{"message":"m","status":"PENDING","event_id":"task_1"}`)
	})
	if _, err := srv.client(t).AddAsync(t.Context(), theInferred()); err != nil {
		t.Fatal(err)
	}
	if got, want := srv.requests()[0].body, `{"content":"`+noteText+`","infer":true,"user_id":"sam"}`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// Of a success of 64 MiB no more is read than the limit and what fits the
// connection's buffers.
func TestA64MiBAnswerIsReadUpToTheLimit(t *testing.T) {
	t.Parallel()
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	var sent atomic.Int64
	srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(201)
		io.WriteString(w, `{"id":1,"text":"`)
		for range 64 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
			sent.Add(1)
		}
		io.WriteString(w, `"}`)
	})
	_, err := srv.client(t).Add(t.Context(), theNote())
	var e *memwrite.Error
	if !errors.As(err, &e) || e.Kind != memwrite.KindTooLarge || e.Status != 201 || len(srv.requests()) != 1 {
		t.Error(err)
	}
	srv.Close() // waits for the handler
	if n := sent.Load(); n < 10 || n > 40 {
		t.Errorf("%d MiB were taken for a limit of 16", n)
	}
}
