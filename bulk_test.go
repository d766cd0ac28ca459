package memwrite_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	memwrite "github.com/memwrite/memwrite-go"
)

func twoItems() memwrite.BulkAddRequest {
	return memwrite.BulkAddRequest{EndUserID: "acme", Items: []memwrite.BulkItem{
		{Text: noteText, Tags: []string{"Team"}, Metadata: []byte(`{"n":12345678901234567890}`)},
		{Text: "Thanks!", EndUserID: "sam"},
	}}
}

func TestBulkAddSaysWhatBecameOfEachItem(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-ID", "r-1")
		respond(w, 207, `{"total":2,"created":1,"skipped":1,"rejected":0,"results":[{"index":0,"status":"created","memory_ids":[7],"reason":null},{"index":1,"status":"held","memory_ids":[],"reason":"later"}]}`)
	})
	res, err := srv.client(t).BulkAdd(t.Context(), twoItems())
	if err != nil || res.Created != 1 || res.Skipped != 0 || len(res.Items) != 2 || res.Items[0].MemoryIDs[0] != 7 || res.RequestID != "r-1" || res.Tries != 1 {
		t.Fatal(res, err)
	}
	if res.Items[1].Status != "held" || res.Items[1].Reason != "later" {
		t.Errorf("an unknown status was lost: %+v", res.Items[1])
	}
	got := srv.requests()[0]
	want := `{"items":[{"metadata":{"n":12345678901234567890},"tags":["Team"],"text":"` + noteText + `"},{"end_user_id":"sam","text":"Thanks!"}]}`
	if got.body != want || got.path != "/memory/bulk-add" || got.header.Get("X-End-User-ID") != "acme" {
		t.Errorf("%s %s", got.path, got.body)
	}
}

// Nothing names a bulk write, so a lost answer is reported and not tried again.
func TestTrapABulkWriteHasNoIdentityAndIsSentOnce(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]func(w http.ResponseWriter){
		"reset":      func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"502":        func(w http.ResponseWriter) { respond(w, 502, "<html>") },
		"cut":        func(w http.ResponseWriter) { respond(w, 207, `{"results":[`) },
		"one result": func(w http.ResponseWriter) { respond(w, 207, `{"results":[{"index":0,"status":"created"}]}`) },
		"twice one": func(w http.ResponseWriter) {
			respond(w, 207, `{"results":[{"index":0,"status":"created"},{"index":0,"status":"created"}]}`)
		},
		"outside": func(w http.ResponseWriter) {
			respond(w, 207, `{"results":[{"index":0,"status":"created"},{"index":2,"status":"created"}]}`)
		},
	} {
		srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) { h(w) })
		res, err := srv.client(t).BulkAdd(t.Context(), twoItems())
		if !errors.Is(err, memwrite.ErrUnknownOutcome) || len(srv.requests()) != 1 {
			t.Errorf("%s: %+v, %v after %d requests", name, res, err, len(srv.requests()))
		}
		var e *memwrite.Error
		if v := memwrite.VerdictOf(err); v.Action != memwrite.Hold || !errors.As(err, &e) || e.Retryable() {
			t.Errorf("%s: a queue is told to send it again: %v", name, v)
		}
	}
	srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) { respond(w, 200, `{"status":"ok"}`) })
	if _, err := srv.client(t).BulkAdd(t.Context(), twoItems()); !errors.Is(err, memwrite.ErrQuotaExceeded) {
		t.Error(err)
	}
}

// The same of an Add without a Ref; and not where the service said that it did
// not take the write, or never saw it.
func TestTrapAnAddWithoutARefIsNotSentAgainByAQueue(t *testing.T) {
	t.Parallel()
	nameless := theNote()
	nameless.Ref = memwrite.Ref{}
	for _, tc := range []struct {
		name   string
		answer func(w http.ResponseWriter)
		req    memwrite.AddRequest
		want   memwrite.Action
	}{
		{"reset", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, nameless, memwrite.Hold},
		{"502", func(w http.ResponseWriter) { respond(w, 502, "") }, nameless, memwrite.Hold},
		{"503", func(w http.ResponseWriter) { respond(w, 503, "") }, nameless, memwrite.RetryAfter},
		{"429", func(w http.ResponseWriter) { respond(w, 429, "") }, nameless, memwrite.RetryAfter},
		{"reset of a named one", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, theNote(), memwrite.RetryAfter},
	} {
		srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) { tc.answer(w) })
		_, err := srv.client(t).Add(t.Context(), tc.req)
		if v := memwrite.VerdictOf(err); v.Action != tc.want {
			t.Errorf("%s: %v, %v", tc.name, v, err)
		}
	}
	gone := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) {})
	c := gone.client(t)
	gone.Close()
	if _, err := c.Add(t.Context(), nameless); memwrite.VerdictOf(err).Action != memwrite.RetryAfter {
		t.Errorf("a request that never left: %v", err)
	}
}

func TestBulkAddRefusesBadInput(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) { respond(w, 207, `{}`) })
	c := srv.client(t)
	for field, change := range map[string]func(*memwrite.BulkAddRequest){
		"EndUserID":           func(r *memwrite.BulkAddRequest) { r.EndUserID = "" },
		"Items":               func(r *memwrite.BulkAddRequest) { r.Items = nil },
		"Items[1].Text":       func(r *memwrite.BulkAddRequest) { r.Items[1].Text = " " },
		"Items[1].Source":     func(r *memwrite.BulkAddRequest) { r.Items[1].Source = strings.Repeat("s", 65) },
		"Items[0].Metadata":   func(r *memwrite.BulkAddRequest) { r.Items[0].Metadata = json.RawMessage(`[]`) },
		"Items[0].Importance": func(r *memwrite.BulkAddRequest) { v := 2.0; r.Items[0].Importance = &v },
	} {
		req := twoItems()
		change(&req)
		_, err := c.BulkAdd(t.Context(), req)
		var e *memwrite.Error
		if !errors.As(err, &e) || e.Kind != memwrite.KindInvalidInput || e.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	req := twoItems()
	req.Items = make([]memwrite.BulkItem, 51)
	if _, err := c.BulkAdd(t.Context(), req); !errors.Is(err, memwrite.ErrInvalidInput) {
		t.Error(err)
	}
	if n := len(srv.requests()); n != 0 {
		t.Errorf("%d requests left", n)
	}
}
