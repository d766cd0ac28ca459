package memwrite_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
)

// There is no tag yet to compare with, so the committed list of the exported
// API stands for it: a name, a type or a value that changed shows in review.
func TestS58_TheExportedAPIIsTheCommittedOne(t *testing.T) {
	t.Parallel()
	committed, err := os.ReadFile(exportedPath)
	if err != nil {
		t.Fatal(err)
	}
	if exportedAPI(t) != string(committed) {
		t.Errorf("the exported API is not that of %s; TestExportedAPI lists the changes", exportedPath)
	}
	for _, line := range []string{ // constants are in it with their values
		`AlreadyIngested AddOutcome = "already_ingested"`, `Pending   EventStatus = "PENDING"`, `ObserveRetry      ObservationKind = "retry"`,
		"var ErrUnknownOutcome", "func (e *Error) Unwrap() []error", "func VerdictOf(err error) Verdict",
	} {
		if !strings.Contains(string(committed), line) {
			t.Errorf("%s does not list %s", exportedPath, line)
		}
	}
}

// What code outside this package may lean on: sentinels by errors.Is, one type
// by errors.As, the answer and the context's cause together. Nothing else of
// the package is used to tell the errors apart.
func TestS59_ErrorsAreToldApartFromOutside(t *testing.T) {
	t.Parallel()
	sentinels := map[string]error{
		"invalid": memwrite.ErrInvalidInput, "unauthorized": memwrite.ErrUnauthorized, "forbidden": memwrite.ErrForbidden,
		"not found": memwrite.ErrNotFound, "conflict": memwrite.ErrConflict, "ref reused": memwrite.ErrRefReused,
		"in progress": memwrite.ErrInProgress, "rate limited": memwrite.ErrRateLimited, "quota": memwrite.ErrQuotaExceeded,
		"credits": memwrite.ErrInsufficientCredits, "too large": memwrite.ErrTooLarge, "server": memwrite.ErrServer,
		"unknown": memwrite.ErrUnknownOutcome, "event failed": memwrite.ErrEventFailed, "pending": memwrite.ErrStillPending,
		"redirect": memwrite.ErrRedirect, "unsupported": memwrite.ErrUnsupported,
		"refused": memwrite.ErrRefused,
	}
	for _, tc := range []struct {
		status int
		body   string
		want   string
	}{
		{400, `{"error":"ValidationError"}`, "invalid"}, {422, `{"detail":[]}`, "invalid"}, {401, ``, "unauthorized"},
		{403, ``, "forbidden"}, {404, ``, "not found"}, {409, `{"code":"IDEMPOTENCY_CONFLICT"}`, "conflict"},
		{409, `{"code":"ANYTHING"}`, "conflict"}, {409, `{"code":"IDEMPOTENCY_INCOMPLETE"}`, "in progress"},
		{429, `{"code":"RATE_LIMITED"}`, "rate limited"}, {429, `{"detail":{"error":"limit_exceeded"}}`, "quota"},
		{200, `{"status":"ok"}`, "quota"}, {402, ``, "credits"}, {413, ``, "too large"}, {500, ``, "server"}, {503, ``, "server"},
		{502, ``, "unknown"}, {504, ``, "unknown"}, {200, `{}`, "unknown"}, {200, `<html>`, "unknown"}, {301, ``, "redirect"}, {501, ``, "unsupported"},
		{400, ``, "refused"}, {422, `<html>`, "refused"}, {400, `{"message":"Bad Request"}`, "refused"}, {421, `{"code":"INVALID_REQUEST"}`, "refused"}, {499, ``, "refused"},
	} {
		srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Request-ID", "r-1")
			respond(w, tc.status, tc.body)
		})
		p := quick()
		p.MaxTries = 2
		_, err := srv.client(t, memwrite.WithRetryPolicy(p)).Add(t.Context(), theNote())
		for name, sentinel := range sentinels {
			if errors.Is(err, sentinel) != (name == tc.want) {
				t.Errorf("%d %s: %v is %s: %v", tc.status, tc.body, err, name, name != tc.want)
			}
		}
		var e *memwrite.Error
		if !errors.As(err, &e) || e.Op != "Add" || e.Status != tc.status || e.RequestID != "r-1" || e.Identity != "note-0001" || e.Tries < 1 {
			t.Errorf("%d %s: %+v", tc.status, tc.body, e)
		}
	}

	srv := listen(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			respond(w, 503, `{"detail":"draining"}`)
			return
		}
		respond(w, 200, `{"id":"task_1","status":"FAILED","results":[],"error_code":"PROVIDER_INVALID"}`)
	})
	c := srv.client(t, memwrite.WithRetryPolicy(memwrite.RetryPolicy{NoGate: true}))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := c.Add(ctx, theNote())
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		t.Errorf("the deadline is not in %v", err)
	}
	var e *memwrite.Error
	if errors.As(err, &e) && e.Status == 503 && !errors.Is(err, memwrite.ErrServer) {
		t.Errorf("the answer is not in %v", err)
	}
	_, err = c.WaitForEvent(t.Context(), "task_1")
	if !errors.Is(err, memwrite.ErrEventFailed) || !errors.As(err, &e) || e.Event == nil || e.Receipt == nil || e.Code != "PROVIDER_INVALID" {
		t.Errorf("%#v", err)
	}
	cause := errors.New("the worker stops")
	stopped, stop := context.WithCancelCause(t.Context())
	stop(cause)
	if _, err = c.Add(stopped, theNote()); !errors.Is(err, cause) {
		t.Errorf("the caller's cause is not in %v", err)
	}
}
