package memwrite_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	memwrite "github.com/memwrite/memwrite-go"
)

// Every 4xx: what the service said about a request is the request's fault, and
// anything else is a matter of what stands between.
func TestVerdictOnEvery4xx(t *testing.T) {
	t.Parallel()
	bodies := map[string]string{"its own": `{"error":{"code":"VALIDATION_ERROR","message":"m"}}`, "empty": ``, "a page": `<html>Bad Request</html>`, "a gateway's": `{"message":"Bad Request"}`}
	var status atomic.Int64
	var body atomic.Value
	srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		respond(w, int(status.Load()), body.Load().(string))
	})
	p := quick()
	p.MaxTries, p.NoBudget, p.NoPause = 1, true, true
	c := srv.client(t, memwrite.WithRetryPolicy(p))
	for s := int64(400); s < 500; s++ {
		for name, b := range bodies {
			want := memwrite.Hold
			switch s {
			case 408, 425, 429:
				want = memwrite.RetryAfter
			case 409, 413, 414, 431:
				want = memwrite.DeadLetter
			case 400, 415, 422:
				if name == "its own" {
					want = memwrite.DeadLetter
				}
			}
			status.Store(s)
			body.Store(b)
			if _, err := c.Add(t.Context(), theNote()); memwrite.VerdictOf(err).Action != want {
				t.Errorf("%d with %s body: %v, want %v: %v", s, name, memwrite.VerdictOf(err), want, err)
			}
		}
	}
}

// A setting that is missing is no message's fault.
func TestVerdictOnSettings(t *testing.T) {
	srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) { respond(w, 500, ``) })
	noFish, err := memwrite.New(memwrite.WithMemorySync(srv.URL, msKey))
	if err != nil {
		t.Fatal(err)
	}
	noMem, err := memwrite.New(memwrite.WithFishMem(srv.URL, fmKey))
	if err != nil {
		t.Fatal(err)
	}
	made := func(opts ...memwrite.Option) func() error {
		return func() error { _, err := memwrite.New(opts...); return err }
	}
	ctx := t.Context()
	t.Setenv("MEMORYSYNC_BASE_URL", srv.URL)
	t.Setenv("MEMORYSYNC_API_KEY", "")
	for name, call := range map[string]func() error{
		"AddAsync":     func() error { _, err := noFish.AddAsync(ctx, theInferred()); return err },
		"AddAndWait":   func() error { _, err := noFish.AddAndWait(ctx, theInferred()); return err },
		"AddVerbatim":  func() error { _, err := noFish.AddVerbatim(ctx, memwrite.InferRequest{}); return err },
		"WaitForEvent": func() error { _, err := noFish.WaitForEvent(ctx, "task_1"); return err },
		"Redrive":      func() error { _, err := noFish.Redrive(ctx, "task_1"); return err },
		"Add":          func() error { _, err := noMem.Add(ctx, theNote()); return err },
		"AddTurn":      func() error { _, err := noMem.AddTurn(ctx, theTurn()); return err },
		"Forget": func() error {
			_, err := noMem.Forget(ctx, memwrite.ForgetRequest{EndUserID: "acme", MemoryIDs: []int64{1}})
			return err
		},
		"Replace": func() error {
			_, err := noMem.Replace(ctx, memwrite.ReplaceRequest{Old: note("1", nutsText), New: edited(note("1", ""), officeText)})
			return err
		},
		"AddAll": func() error {
			for _, err := range noMem.AddAll(ctx, slices.Values([]memwrite.AddRequest{theNote()}), memwrite.AddAllOptions{}) {
				return err
			}
			return nil
		},
		"no service":          made(),
		"half an environment": made(memwrite.FromEnvironment()),
		"no scheme":           made(memwrite.WithMemorySync("127.0.0.1:8080", msKey)),
		"no key":              made(memwrite.WithFishMem(srv.URL, "")),
	} {
		err := call()
		if v := memwrite.VerdictOf(fmt.Errorf("wrapped: %w", err)); v.Action != memwrite.Hold || !errors.Is(err, memwrite.ErrInvalidInput) || !strings.Contains(v.Reason, "settings") {
			t.Errorf("%s: %v, error %v", name, v, err)
		}
	}
	if n := len(srv.requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestVerdictTable(t *testing.T) {
	t.Parallel()
	failed := func(class memwrite.FailureClass) *memwrite.Error {
		return &memwrite.Error{Kind: memwrite.KindEventFailed, Event: &memwrite.Event{Status: memwrite.Failed, FailureClass: class}}
	}
	for _, tc := range []struct {
		err  error
		want memwrite.Action
	}{
		{nil, memwrite.Ack},
		{&memwrite.Error{Kind: memwrite.KindRateLimited}, memwrite.RetryAfter},
		{&memwrite.Error{Kind: memwrite.KindServer}, memwrite.RetryAfter},
		{&memwrite.Error{Kind: memwrite.KindUnknownOutcome}, memwrite.RetryAfter},
		{&memwrite.Error{Kind: memwrite.KindInProgress}, memwrite.RetryAfter},
		{&memwrite.Error{Kind: memwrite.KindStillPending}, memwrite.RetryAfter},
		{&memwrite.Error{}, memwrite.RetryAfter},
		{&memwrite.Error{Kind: 999}, memwrite.RetryAfter},
		{errors.New("somebody else's"), memwrite.RetryAfter},
		{context.DeadlineExceeded, memwrite.RetryAfter},
		{&memwrite.Error{Kind: memwrite.KindUnauthorized}, memwrite.Hold},
		{&memwrite.Error{Kind: memwrite.KindForbidden}, memwrite.Hold},
		{&memwrite.Error{Kind: memwrite.KindInsufficientCredits}, memwrite.Hold},
		{&memwrite.Error{Kind: memwrite.KindQuotaExceeded}, memwrite.Hold},
		{&memwrite.Error{Kind: memwrite.KindNotFound}, memwrite.Hold},
		{&memwrite.Error{Kind: memwrite.KindRedirect}, memwrite.Hold},
		{&memwrite.Error{Kind: memwrite.KindUnsupported}, memwrite.Hold},
		{&memwrite.Error{Kind: memwrite.KindRefused}, memwrite.Hold},
		{&memwrite.Error{Kind: memwrite.KindInvalidInput}, memwrite.DeadLetter},
		{&memwrite.Error{Kind: memwrite.KindTooLarge}, memwrite.DeadLetter},
		{&memwrite.Error{Kind: memwrite.KindConflict}, memwrite.DeadLetter},
		{&memwrite.Error{Kind: memwrite.KindRefReused}, memwrite.DeadLetter},
		{failed("conflict"), memwrite.DeadLetter},
		{failed(""), memwrite.RedriveEvent},
		{failed("provider_timeout"), memwrite.RedriveEvent},
		{context.Canceled, memwrite.GiveBack},
		{&memwrite.Error{Kind: memwrite.KindCanceled}, memwrite.GiveBack},
		{fmt.Errorf("wrapped: %w", &memwrite.Error{Kind: memwrite.KindConflict}), memwrite.DeadLetter},
	} {
		if got := memwrite.VerdictOf(tc.err); got.Action != tc.want || got.Reason == "" {
			t.Errorf("%v: %v (%s), want %v", tc.err, got.Action, got.Reason, tc.want)
		}
	}
}
