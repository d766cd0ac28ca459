package memwrite_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
)

// The error tells the service's own number, and none where the service gave
// none.
func TestRetryAfterIsWhatTheServiceAsked(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status int
		hint   string
		body   string
		want   time.Duration
	}{
		{503, "", "", 0}, {503, "60", "", time.Minute}, {429, "", "", 0}, {429, "60", "", time.Minute}, {502, "", "<html>", 0},
		{429, "", `{"error":{"code":"RATE_LIMIT_EXCEEDED","retry_after":45}}`, 45 * time.Second},
		{429, "", `{"reason":"per_ip","retry_after_seconds":"45"}`, 45 * time.Second},
	} {
		t.Run(fmt.Sprint(tc), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := http.Header{}
				if tc.hint != "" {
					h.Set("Retry-After", tc.hint)
				}
				_, err := inVirtualTime(t, memwrite.RetryPolicy{}, 2*time.Second, func(*http.Request) (int, http.Header, string) {
					return tc.status, h, tc.body
				})
				var e *memwrite.Error
				if !errors.As(err, &e) {
					t.Fatal(err)
				}
				// A 429 without a hint is drawn, and may end within the deadline.
				if e.RetryAfter != tc.want || strings.Contains(err.Error(), "the service asks") != (tc.want > 0) {
					t.Errorf("%v: RetryAfter %v, want %v", err, e.RetryAfter, tc.want)
				}
				if after := memwrite.VerdictOf(err).After; after != tc.want {
					t.Errorf("the verdict waits %v", after)
				}
			})
		})
	}
}

// A 429 that asks for no wait, by a zero or a date that has passed, does not use
// up the tries within a tenth of a second.
func TestALimitThatAsksForNothingIsBackedOffFrom(t *testing.T) {
	t.Parallel()
	for _, hint := range []string{"0", "0.001", "Sun, 06 Nov 1994 08:49:37 GMT"} {
		for _, noPause := range []bool{false, true} {
			t.Run(fmt.Sprint(hint, noPause), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					saved := 0
					for range 100 {
						begin := time.Now()
						c := bubbleClient(t, func(*http.Request) (int, http.Header, string) {
							if time.Since(begin) < 2*time.Second {
								return 429, http.Header{"Retry-After": {hint}}, ""
							}
							return 201, nil, storedBody
						}, memwrite.WithRetryPolicy(memwrite.RetryPolicy{NoPause: noPause}))
						if _, err := c.Add(t.Context(), theNote()); err == nil {
							saved++
						}
					}
					if saved < 90 {
						t.Errorf("%d of 100 writes outlive a limit of two seconds", saved)
					}
				})
			})
		}
	}
}

// Of several headers the first that makes sense counts, as among the sources.
func TestSeveralRetryAfterHeaders(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		values []string
		want   time.Duration
	}{
		{[]string{"soon", "120"}, 120 * time.Second}, {[]string{"", "120"}, 120 * time.Second}, {[]string{"120", "5"}, 120 * time.Second},
	} {
		srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header()["Retry-After"] = tc.values
			respond(w, 503, "")
		})
		_, err := srv.client(t).Add(t.Context(), theNote())
		var e *memwrite.Error
		if !errors.As(err, &e) || e.RetryAfter != tc.want {
			t.Errorf("%q: %v", tc.values, err)
		}
	}
}

// A service that is down and has said until when does not keep a call waiting
// whose deadline comes first.
func TestAShutGateWithAHintEndsWhatCannotOutlastIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := bubbleClient(t, func(*http.Request) (int, http.Header, string) {
			return 503, http.Header{"Retry-After": {"60"}}, ""
		})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		for range 10 {
			go func() { _, _ = c.Add(ctx, theNote()); done <- struct{}{} }()
		}
		time.Sleep(5 * time.Second)
		short, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begin := time.Now()
		_, err := c.Add(short, theNote())
		var e *memwrite.Error
		if !errors.As(err, &e) || time.Since(begin) > 0 || e.Tries != 0 || !errors.Is(err, context.DeadlineExceeded) ||
			e.RetryAfter < 50*time.Second || e.RetryAfter > time.Minute {
			t.Errorf("%v after %v, RetryAfter %v", err, time.Since(begin), e.RetryAfter)
		}
		stop()
		for range 10 {
			<-done
		}
	})
}

// A number that repeats the status is not the service's code.
func TestANumericCodeDoesNotHideTheQuota(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"code":429,"error":"limit_exceeded","message":"m"}`, `{"code":429,"error":{"code":"limit_exceeded"}}`,
		`{"code":"429","detail":{"error":"limit_exceeded","message":"m"}}`, `{"error":{"code":429},"detail":{"error":"limit_exceeded"}}`,
	} {
		srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) { respond(w, 429, body) })
		if _, err := srv.client(t).Add(t.Context(), theNote()); !errors.Is(err, memwrite.ErrQuotaExceeded) || len(srv.requests()) != 1 {
			t.Errorf("%s: %v, %d requests", body, err, len(srv.requests()))
		}
	}
}
