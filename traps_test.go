package memwrite_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	memwrite "github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/mockserver"
)

func TestTrapTurnSkippedByQuotaIsAnError(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		respond(w, 201, `{"memory_id":null,"status":"ok","processing_status":"skipped","already_exists":false,"request_id":null}`)
	})
	_, err := srv.client(t).AddTurn(t.Context(), theTurn())
	if !errors.Is(err, memwrite.ErrQuotaExceeded) || len(srv.requests()) != 1 {
		t.Error(err)
	}
}

func TestTrapTurnFailedIsRetriedAndNeverAReceipt(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n < 3 {
			respond(w, 201, `{"memory_id":null,"status":"error","processing_status":"failed","processing_error":"model down","already_exists":false,"request_id":null}`)
			return
		}
		respond(w, 201, `{"memory_id":null,"status":"processing","processing_status":"distilling","already_exists":false,"request_id":"x"}`)
	})
	r, err := srv.client(t).AddTurn(t.Context(), theTurn())
	if err != nil || r.ProcessingStatus != memwrite.TurnDistilling || r.Tries != 3 {
		t.Error(r, err)
	}
}

func TestTrapTwo429s(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		`{"error":{"code":"RATE_LIMIT_EXCEEDED","message":"m","retry_after":0}}`: 5,
		`{"code":"RATE_LIMITED","message":"m"}`:                                  5,
		`{"detail":{"error":"limit_exceeded","message":"m"}}`:                    1,
	} {
		srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) { respond(w, 429, body) })
		_, err := srv.client(t).Add(t.Context(), theNote())
		if n := len(srv.requests()); n != want || errors.Is(err, memwrite.ErrQuotaExceeded) != (want == 1) {
			t.Errorf("%s: %d requests, %v", body, n, err)
		}
	}
}

func TestTrapFour409s(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]int{
		"IDEMPOTENCY_CONFLICT": 1, "VERSION_CONFLICT": 1, "ANYTHING_ELSE": 1,
		"IDEMPOTENCY_INCOMPLETE": 5, "USAGE_RESERVATION_IN_PROGRESS": 5,
	} {
		srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			respond(w, 409, `{"code":"`+code+`","message":"m","request_id":"r"}`)
		})
		_, err := srv.client(t).AddAsync(t.Context(), theInferred())
		if n := len(srv.requests()); n != want || errors.Is(err, memwrite.ErrInProgress) != (want == 5) {
			t.Errorf("%s: %d requests, %v", code, n, err)
		}
		for _, r := range srv.requests() {
			if r.header.Get("Idempotency-Key") != "note-0101" {
				t.Error(r.header)
			}
		}
	}
}

func TestTrapReplayOfAFailedKeyRunsNothing(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			respond(w, 202, `{"message":"m","status":"FAILED","event_id":"task_1"}`)
			return
		}
		respond(w, 200, `{"id":"task_1","status":"FAILED","results":[],"attempts":5,"error":"provider down"}`)
	})
	c := srv.client(t)
	r, err := c.AddAsync(t.Context(), theInferred())
	if err != nil || r.Status != memwrite.Failed {
		t.Error(r, err)
	}
	_, err = c.AddAndWait(t.Context(), theInferred())
	if !errors.Is(err, memwrite.ErrEventFailed) || !strings.Contains(err.Error(), "Redrive") {
		t.Error(err)
	}
	if v := memwrite.VerdictOf(err); v.Action != memwrite.RedriveEvent {
		t.Error(v)
	}
}

func TestTrapRefReusedForAnotherText(t *testing.T) {
	t.Parallel()
	var meta json.RawMessage
	srv := listen(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			respond(w, 200, `{"status":"skipped","reason":"already_ingested","memory_ids":[66438],"client_ref":"note-0001"}`)
			return
		}
		respond(w, 200, `{"id":66438,"text":"t","metadata":`+string(meta)+`}`)
	})
	c := srv.client(t, memwrite.WithVerifyText(true))
	for _, tc := range []struct {
		meta string
		want memwrite.TextVerification
	}{
		{`{"memwrite_text_sha256":"` + strings.Repeat("0", 64) + `","memwrite_client_ref":"note-0001"}`, memwrite.TextDifferent},
		{`{"memwrite_text_sha256":"` + strings.Repeat("0", 64) + `","memwrite_client_ref":"note-0002"}`, memwrite.TextUnknown},
		{`{"memwrite_text_sha256":"` + strings.Repeat("0", 64) + `"}`, memwrite.TextUnknown},
		{`{}`, memwrite.TextUnknown},
		{`null`, memwrite.TextUnknown},
	} {
		meta = json.RawMessage(tc.meta)
		res, err := c.Add(t.Context(), theNote())
		if errors.Is(err, memwrite.ErrRefReused) != (tc.want == memwrite.TextDifferent) || res.Verified != tc.want {
			t.Errorf("%s: %+v %v", tc.meta, res, err)
		}
	}
	// The hash Add sent is the one it accepts.
	var sent struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	json.Unmarshal([]byte(srv.requests()[0].body), &sent)
	meta = sent.Metadata
	if res, err := c.Add(t.Context(), theNote()); err != nil || res.Verified != memwrite.TextMatches {
		t.Error(res, err)
	}
}

// A text close to another record's is answered with that record's memory. Sent
// again, it is that memory which is read back, and its hash is another text's.
func TestTrapNearDuplicateIsNoReusedRef(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := srv.Client(t, memwrite.WithVerifyText(true))
	for i, text := range []string{"I am allergic to peanuts.", "I am allergic to the peanuts.", "I am allergic to the peanuts."} {
		res, err := c.Add(t.Context(), memwrite.AddRequest{Text: text, EndUserID: "acme", Ref: memwrite.NewRef("note", []string{"1", "2", "2"}[i])})
		if err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
		if i == 2 && (res.Outcome != memwrite.AlreadyIngested || res.Verified != memwrite.TextUnknown || res.VerifyErr != nil) {
			t.Errorf("%+v", res)
		}
	}
	if n := len(srv.Records()); n != 1 {
		t.Errorf("%d records; the texts were meant to be close", n)
	}
	_, err := c.Add(t.Context(), memwrite.AddRequest{Text: "Our office moved to Cardiff in May.", EndUserID: "acme", Ref: memwrite.NewRef("note", "1")})
	if !errors.Is(err, memwrite.ErrRefReused) {
		t.Errorf("error %v, want ErrRefReused", err)
	}
}

func TestTrapVerifyThatCannotRead(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			respond(w, 200, `{"status":"skipped","reason":"already_ingested","memory_ids":[66438],"client_ref":"note-0001"}`)
			return
		}
		respond(w, 404, `{"error":{"code":"NOT_FOUND","message":"m"}}`)
	})
	req := theNote()
	req.VerifyText = true
	res, err := srv.client(t).Add(t.Context(), req)
	if err != nil || res.Verified != memwrite.TextUnknown || !errors.Is(res.VerifyErr, memwrite.ErrNotFound) {
		t.Errorf("%+v %v", res, err)
	}
}

func TestTrapRedriveWhoseAnswerWasLost(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(n int, w http.ResponseWriter, r *http.Request) {
		switch {
		case n == 1:
			panic(http.ErrAbortHandler)
		case r.Method == http.MethodPost:
			respond(w, 404, `{"code":"OPERATION_NOT_RETRYABLE","message":"m","request_id":"r"}`)
		default:
			respond(w, 200, `{"id":"task_1","status":"SUCCEEDED","results":[]}`)
		}
	})
	ev, err := srv.client(t).Redrive(t.Context(), "task_1")
	if err != nil || ev.Status != memwrite.Succeeded {
		t.Error(ev, err)
	}
}

func TestTrapTenantFallsBackOnlyWhenNotAllowed(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{200: "t-1", 401: "default", 403: "default", 404: "", 500: ""} {
		srv := listen(t, func(_ int, w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/org/projects" {
				body := `{"detail":"no"}`
				if status == 200 {
					body = `[{"id":"proj_1","tenant_id":"t-1","name":"n"}]`
				}
				respond(w, status, body)
				return
			}
			respond(w, 201, `{"memory_id":null,"status":"processing","processing_status":"distilling","request_id":"x"}`)
		})
		c := srv.client(t)
		for range 2 {
			req := theTurn()
			req.TenantID = ""
			r, err := c.AddTurn(t.Context(), req)
			if (err == nil) != (want != "") || err == nil && r.TenantID != want {
				t.Errorf("%d: %+v %v", status, r, err)
			}
		}
		asked := 0
		for _, r := range srv.requests() {
			if r.path == "/org/projects" {
				asked++
			}
		}
		if want != "" && asked != 1 {
			t.Errorf("%d: asked %d times", status, asked)
		}
	}
}

func TestTrapBytesGoOutAsTheyCame(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/memories" {
			respond(w, 202, `{"message":"m","status":"PENDING","event_id":"task_1"}`)
			return
		}
		respond(w, 201, `{"memory_id":null,"status":"processing","processing_status":"distilling","request_id":"x"}`)
	})
	c := srv.client(t)
	tr := theTurn()
	tr.Metadata = json.RawMessage(`{"n":12345678901234567890,"s":"<a&b>"}`)
	if _, err := c.AddTurn(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	in := theInferred()
	in.EventDate, in.Metadata = "2026-07-31T00:00:00.000Z", tr.Metadata
	if _, err := c.AddAsync(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	reqs := srv.requests()
	for _, want := range []string{`"occurred_at":"2026-06-16T09:30:00.000Z"`, `"metadata":{"n":12345678901234567890,"s":"<a&b>"}`} {
		if !strings.Contains(reqs[0].body, want) {
			t.Errorf("%s is not in %s", want, reqs[0].body)
		}
	}
	want := `{"content":"` + noteText + `","event_date":"2026-07-31T00:00:00.000Z","infer":true,"metadata":{"n":12345678901234567890,"s":"<a&b>"},"user_id":"sam"}`
	if reqs[1].body != want {
		t.Errorf("got %s\nwant %s", reqs[1].body, want)
	}
}

func TestTrapOnlyUserTurnsAreSent(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		respond(w, 201, `{"memory_id":null,"status":"ok","processing_status":"skipped_non_user_turn","request_id":null}`)
	})
	c := srv.client(t)
	req := theTurn()
	req.Role = "assistant"
	r, err := c.AddTurn(t.Context(), req)
	if err != nil || r.ProcessingStatus != memwrite.SkippedNonUser || r.Tries != 0 || len(srv.requests()) != 0 {
		t.Error(r, err)
	}
	req.SendNonUser = true
	if r, err = c.AddTurn(t.Context(), req); err != nil || r.Tries != 1 {
		t.Error(r, err)
	}
}

func TestTrapEachServiceGetsItsOwnKeyAlone(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/memory/add" {
			respond(w, 201, storedBody)
			return
		}
		respond(w, 202, `{"message":"m","status":"PENDING","event_id":"task_1"}`)
	})
	c := srv.client(t)
	if _, err := c.Add(t.Context(), theNote()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.AddAsync(t.Context(), theInferred()); err != nil {
		t.Fatal(err)
	}
	ms, fm := srv.requests()[0].header, srv.requests()[1].header
	if ms.Get("X-API-Key") != msKey || ms.Get("Authorization") != "" || ms["X-Project-Id"] != nil {
		t.Error(ms)
	}
	if fm.Get("Authorization") != "Bearer "+fmKey || fm.Get("X-API-Key") != "" || fm["X-Project-Id"] != nil {
		t.Error(fm)
	}
}

func TestTrapNothingToRememberIsNotAMemory(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		respond(w, 200, `{"id":"task_1","status":"SUCCEEDED","results":[]}`)
	})
	ev, err := srv.client(t).WaitForEvent(t.Context(), "task_1")
	if err != nil || !ev.NoMemory() {
		t.Error(ev, err)
	}
}
