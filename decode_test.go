package memwrite_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
)

// Every body the services, their frameworks and proxies send, on Add: one try
// each, so that the reading is looked at and not the retries.
func TestErrorBodies(t *testing.T) {
	t.Parallel()
	html := "<html><body>" + strings.Repeat("Bad Gateway ", 400) + "</body></html>"
	for _, tc := range []struct {
		name        string
		status      int
		contentType string
		body        string
		kind        memwrite.Kind
		code        string
		message     string
		requestID   string
	}{
		{"nested", 422, "application/json", `{"error":{"code":"VALIDATION_ERROR","message":"text is too short","details":[{"field":"text"}]},"request_id":"r1"}`, memwrite.KindInvalidInput, "VALIDATION_ERROR", "text is too short", "r1"},
		{"flat", 400, "application/json", `{"error":"ValidationError","message":"refused","request_id":"r1"}`, memwrite.KindInvalidInput, "ValidationError", "refused", "r1"},
		{"flat code", 409, "application/json", `{"code":"IDEMPOTENCY_CONFLICT","message":"other command","request_id":"r1"}`, memwrite.KindConflict, "IDEMPOTENCY_CONFLICT", "other command", "r1"},
		{"detail string", 403, "application/json", `{"detail":"Insufficient scope. Missing: memory:add"}`, memwrite.KindForbidden, "", "Insufficient scope. Missing: memory:add", "from-header"},
		{"detail object", 429, "application/json", `{"detail":{"error":"limit_exceeded","message":"Monthly add limit reached"}}`, memwrite.KindQuotaExceeded, "limit_exceeded", "Monthly add limit reached", "from-header"},
		{"detail array", 422, "application/json", `{"detail":[{"loc":["body","text"],"msg":"field required","type":"missing"}]}`, memwrite.KindInvalidInput, "", "", "from-header"},
		{"error sentence", 400, "application/json", `{"error":"something is wrong"}`, memwrite.KindInvalidInput, "", "something is wrong", "from-header"},
		{"reason", 429, "application/json", `{"reason":"per_ip","retry_after_seconds":3}`, memwrite.KindRateLimited, "per_ip", "", "from-header"},
		{"bare string", 400, "application/json", `"no"`, memwrite.KindRefused, "", "no", "from-header"},
		{"a long list of faults", 422, "application/json", `{"detail":[{"msg":"` + strings.Repeat("x", 5000) + `"}]}`, memwrite.KindInvalidInput, "", "", "from-header"},
		{"cut fault", 422, "application/json", `{"error":{"code":"VALIDATION_ERROR","mess`, memwrite.KindInvalidInput, "VALIDATION_ERROR", "", "from-header"},
		{"HTML 400", 400, "text/html", html, memwrite.KindRefused, "", "", "from-header"},
		{"empty 400", 400, "", ``, memwrite.KindRefused, "", "", "from-header"},
		{"a gateway's 400", 400, "application/json", `{"message":"Bad Request"}`, memwrite.KindRefused, "", "Bad Request", "from-header"},
		{"nothing said 422", 422, "application/json", `{"detail":null,"details":{}}`, memwrite.KindRefused, "", "", "from-header"},
		{"415 with its code", 415, "application/json", `{"code":"UNSUPPORTED_DOCUMENT_MEDIA_TYPE","message":"m"}`, memwrite.KindInvalidInput, "UNSUPPORTED_DOCUMENT_MEDIA_TYPE", "m", "from-header"},
		{"empty array", 500, "application/json", `[]`, memwrite.KindServer, "", "", "from-header"},
		{"null", 500, "application/json", `null`, memwrite.KindServer, "", "", "from-header"},
		{"empty", 503, "application/json", ``, memwrite.KindServer, "", "", "from-header"},
		{"truncated with its code", 409, "application/json", `{"code":"IDEMPOTENCY_INCOMPLETE","message":"still run`, memwrite.KindInProgress, "IDEMPOTENCY_INCOMPLETE", "", "from-header"},
		{"HTML 502", 502, "text/html", html, memwrite.KindUnknownOutcome, "", "", "from-header"},
		{"HTML 403", 403, "text/html", html, memwrite.KindForbidden, "", "", "from-header"},
		{"JSON as text", 404, "text/plain", `{"detail":"Memory not found"}`, memwrite.KindNotFound, "", "Memory not found", "from-header"},
		{"HTML 200", 200, "text/html", html, memwrite.KindUnknownOutcome, "", "the answer is not the JSON it should be", "from-header"},
		{"empty 200", 200, "application/json", ``, memwrite.KindUnknownOutcome, "", "the answer is not the JSON it should be", "from-header"},
		{"204", 204, "application/json", ``, memwrite.KindUnknownOutcome, "", "the answer is not the JSON it should be", "from-header"},
		{"cut 201", 201, "application/json", `{"id":1,"te`, memwrite.KindUnknownOutcome, "", "the answer is not the JSON it should be", "from-header"},
		{"somebody else's 200", 200, "application/json", `{"hello":"world"}`, memwrite.KindUnknownOutcome, "", "the answer names neither a memory nor an outcome", "from-header"},
		{"array 200", 200, "application/json", `[1]`, memwrite.KindUnknownOutcome, "", "the answer does not have the shape of this operation's", "from-header"},
		{"silent quota", 200, "application/json", `{"status":"ok"}`, memwrite.KindQuotaExceeded, "", "the monthly quota dropped the write; it was not stored and the reference stays free", "from-header"},
		{"older silent quota", 200, "application/json", `{"status":"ok","skipped":true}`, memwrite.KindQuotaExceeded, "", "the monthly quota dropped the write; it was not stored and the reference stays free", "from-header"},
		{"nested 100,000 deep", 500, "application/json", strings.Repeat("[", 60_000), memwrite.KindServer, "", "", "from-header"},
		{"402", 402, "application/json", `{"code":"INSUFFICIENT_CREDITS","message":"m"}`, memwrite.KindInsufficientCredits, "INSUFFICIENT_CREDITS", "m", "from-header"},
		{"unknown 409", 409, "application/json", `{"code":"VERSION_CONFLICT","message":"m"}`, memwrite.KindConflict, "VERSION_CONFLICT", "m", "from-header"},
		{"501", 501, "", ``, memwrite.KindUnsupported, "", "", "from-header"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			bothWays(t, func(t *testing.T, opt memwrite.Option) {
				srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("X-Request-ID", "from-header")
					w.Header().Set("Content-Type", tc.contentType)
					w.WriteHeader(tc.status)
					io.WriteString(w, tc.body)
				})
				p := quick()
				p.MaxTries = 1
				res, err := srv.client(t, opt, memwrite.WithRetryPolicy(p)).Add(t.Context(), theNote())
				var e *memwrite.Error
				if !errors.As(err, &e) {
					t.Fatalf("result %+v, error %v", res, err)
				}
				if e.Kind != tc.kind || e.Status != tc.status || e.Code != tc.code || e.Message != tc.message || e.RequestID != tc.requestID {
					t.Errorf("kind %v status %d code %q message %q request %q", e.Kind, e.Status, e.Code, e.Message, e.RequestID)
				}
				if e.Identity != "note-0001" || e.Tries != 1 || len(e.Snippet) > 1000 {
					t.Errorf("identity %q, %d tries, snippet of %d", e.Identity, e.Tries, len(e.Snippet))
				}
			})
		})
	}
}

func TestDetailsSurvive(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"error":{"code":"C","message":"m","details":[{"field":"text"}]}}`: `[{"field":"text"}]`,
		`{"code":"C","details":{"current_version":"7"}}`:                    `{"current_version":"7"}`,
		`{"detail":[{"msg":"field required"}]}`:                             `[{"msg":"field required"}]`,
		`{"detail":"words"}`:                                                ``,
	} {
		srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) { respond(w, 422, body) })
		_, err := srv.client(t).Add(t.Context(), theNote())
		var e *memwrite.Error
		if !errors.As(err, &e) || string(e.Details) != want {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestGzipIsReadEitherWay(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		io.WriteString(z, storedBody)
		z.Close()
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(201)
		w.Write(b.Bytes())
	})
	for _, plain := range []bool{true, false} {
		tr := http.DefaultTransport.(*http.Transport).Clone()
		tr.DisableCompression = plain
		t.Cleanup(tr.CloseIdleConnections)
		res, err := srv.client(t, memwrite.WithHTTPClient(&http.Client{Transport: tr})).Add(t.Context(), theNote())
		if err != nil || res.Memory.ID != 66438 {
			t.Error(res, err)
		}
	}
}

func TestUnknownEnumsAndFieldsAreKept(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/memory/add":
			respond(w, 201, `{"id":9223372036854775807,"text":"t","tier":"zz_new","memory_type":"zz_new","metadata":{"n":12345678901234567890},"zz":{"a":[1]}}`)
		case "/v1/memory/add_turn":
			respond(w, 201, `{"memory_id":null,"status":"zz_new","processing_status":"zz_new","already_exists":false,"request_id":null,"zz":1}`)
		default:
			respond(w, 200, `{"id":"task_1","status":"ZZ_NEW","event_type":"ZZ","failure_class":"zz","results":[],"zz":true}`)
		}
	})
	c := srv.client(t)
	res, err := c.Add(t.Context(), theNote())
	if err != nil || res.Memory.ID != 9223372036854775807 || res.Memory.Tier != "zz_new" || string(res.Memory.Metadata) != `{"n":12345678901234567890}` {
		t.Error(res, err)
	}
	tr, err := c.AddTurn(t.Context(), theTurn())
	if err != nil || tr.ProcessingStatus != "zz_new" || tr.ProcessingStatus.Known() {
		t.Error(tr, err)
	}
	ev, err := c.Event(t.Context(), "task_1")
	if err != nil || ev.Status != "ZZ_NEW" || ev.Status.Terminal() {
		t.Error(ev, err)
	}
}

// Nothing the SDK prints holds the key or the text, whatever the server says.
func TestErrorsHoldNoSecretAndNoText(t *testing.T) {
	t.Parallel()
	quote := `{"detail":[{"msg":"bad key ` + msKey + `","input":"` + noteText + `"}],"message":"you sent ` + noteText[:30] + `"}`
	srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) { respond(w, 422, quote) })
	var log bytes.Buffer
	_, err := srv.client(t, memwrite.WithLogger(debugLogger(&log))).Add(t.Context(), theNote())
	var e *memwrite.Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	all := err.Error() + e.Message + e.Snippet + string(e.Details) + e.GoString() + log.String()
	for _, secret := range []string{msKey, fmKey, noteText, noteText[:30]} {
		if strings.Contains(all, secret) {
			t.Errorf("%q is in %s", secret, all)
		}
	}
	if log.Len() == 0 {
		t.Error("nothing was logged")
	}
	for _, r := range srv.requests() {
		if strings.Contains(r.path, "secret") {
			t.Error(r.path)
		}
	}
}

func TestEndlessBodiesAreBounded(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 500} {
		srv := listen(t, func(_ int, w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			for chunk := bytes.Repeat([]byte(" "), 64<<10); r.Context().Err() == nil; {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		})
		p := quick()
		p.MaxTries, p.MaxAnswer = 1, 1<<20
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		_, err := srv.client(t, memwrite.WithRetryPolicy(p)).Add(ctx, theNote())
		cancel()
		var e *memwrite.Error
		if !errors.As(err, &e) || e.Status != status || (status == 200) != (e.Kind == memwrite.KindTooLarge) {
			t.Errorf("%d: %v", status, err)
		}
	}
}
