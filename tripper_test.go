package memwrite_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
)

type tripFunc func(*http.Request) (*http.Response, error)

func (f tripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// countedBody counts the bodies that were closed.
type countedBody struct {
	io.Reader
	closed *atomic.Int64
}

func (c countedBody) Close() error { c.closed.Add(1); return nil }

// A RoundTripper that breaks its contract is a try without an answer, and not a
// panic in the caller's goroutine.
func TestARoundTripperThatBreaksItsContract(t *testing.T) {
	t.Parallel()
	var closed atomic.Int64
	good := func() (*http.Response, error) {
		return &http.Response{StatusCode: 201, Body: io.NopCloser(strings.NewReader(storedBody))}, nil
	}
	for name, first := range map[string]tripFunc{
		"neither an answer nor an error": func(*http.Request) (*http.Response, error) { return nil, nil },
		"both": func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 201, Body: countedBody{strings.NewReader(storedBody), &closed}}, errors.New("and an error")
		},
		"no body":   func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: 200}, nil },
		"no status": func(*http.Request) (*http.Response, error) { return &http.Response{}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			hc := &http.Client{Transport: tripFunc(func(r *http.Request) (*http.Response, error) {
				if n++; n == 1 {
					return first(r)
				}
				return good()
			})}
			c, err := memwrite.New(memwrite.WithMemorySync("http://memorysync.test", msKey), memwrite.WithRetryPolicy(quick()), memwrite.WithHTTPClient(hc))
			if err != nil {
				t.Fatal(err)
			}
			res, err := c.Add(t.Context(), theNote())
			if err != nil || res.Tries != 2 {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
	if closed.Load() != 1 {
		t.Errorf("%d bodies closed", closed.Load())
	}
}

// A write without an identity whose connection was never made is known not to
// have landed, also behind a proxy and at a host with a wrong certificate.
func TestAWriteThatNeverLeftIsKnownNotToHaveLanded(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := l.Addr().String()
	l.Close()
	plain := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) { respond(w, 201, storedBody) })
	for name, tc := range map[string]struct{ base, proxy string }{
		"refused":                       {"http://" + gone, ""},
		"no such host":                  {"http://memorysync.invalid", ""},
		"a proxy that is gone":          {"http://memorysync.test", "http://" + gone},
		"a proxy that is gone, for TLS": {"https://memorysync.test", "http://" + gone},
		"TLS where none is spoken":      {strings.Replace(plain.URL, "http:", "https:", 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := http.DefaultTransport.(*http.Transport).Clone()
			tr.Proxy = nil
			if tc.proxy != "" {
				u, err := url.Parse(tc.proxy)
				if err != nil {
					t.Fatal(err)
				}
				tr.Proxy = http.ProxyURL(u)
			}
			t.Cleanup(tr.CloseIdleConnections)
			c, err := memwrite.New(memwrite.WithMemorySync(tc.base, msKey), memwrite.WithRetryPolicy(quick()), memwrite.WithHTTPClient(&http.Client{Transport: tr}))
			if err != nil {
				t.Fatal(err)
			}
			note := theNote()
			note.Ref = memwrite.Ref{}
			_, err = c.Add(t.Context(), note)
			var e *memwrite.Error
			if !errors.As(err, &e) || !strings.Contains(e.Message, "no try of this call reached the service") || memwrite.VerdictOf(err).Action != memwrite.RetryAfter {
				t.Errorf("%v: %v", err, memwrite.VerdictOf(err))
			}
		})
	}
}

// A context that was ended with a cause is still one that was cancelled, or
// whose time was up; an errgroup gives every context a cause.
func TestACauseDoesNotHideHowTheContextEnded(t *testing.T) {
	t.Parallel()
	cause := errors.New("another write failed")
	hang := func(r *http.Request) (int, http.Header, string) { <-r.Context().Done(); return 0, nil, "" }
	fails := func(*http.Request) (int, http.Header, string) {
		return 503, http.Header{"Retry-After": {"30"}}, ""
	}
	limited := func(*http.Request) (int, http.Header, string) {
		return 429, http.Header{"Retry-After": {"30"}}, ""
	}
	pending := func(*http.Request) (int, http.Header, string) {
		return 200, nil, eventBody("task_1", memwrite.Retrying)
	}
	add := func(ctx context.Context, c *memwrite.Client) error { _, err := c.Add(ctx, theNote()); return err }
	wait := func(ctx context.Context, c *memwrite.Client) error {
		_, err := c.WaitForEvent(ctx, "task_1")
		return err
	}
	turn := func(ctx context.Context, c *memwrite.Client) error {
		req := theTurn()
		req.TenantID = ""
		_, err := c.AddTurn(ctx, req)
		return err
	}
	all := func(ctx context.Context, c *memwrite.Client) (last error) {
		for _, err := range c.AddAll(ctx, func(yield func(memwrite.AddRequest) bool) { yield(theNote()) }, memwrite.AddAllOptions{}) {
			last = err
		}
		return last
	}
	for name, tc := range map[string]struct {
		server inBubble
		call   func(context.Context, *memwrite.Client) error
	}{
		"in a try": {hang, add}, "in a back-off": {fails, add}, "in a pause": {limited, add},
		"in a wait": {pending, wait}, "looking for the tenant": {hang, turn}, "in AddAll": {hang, all},
	} {
		for _, when := range []time.Duration{0, time.Second} {
			t.Run(fmt.Sprint(name, " after ", when), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					c := bubbleClient(t, tc.server)
					ctx, cancel := context.WithCancelCause(t.Context())
					defer cancel(nil)
					if when == 0 {
						cancel(cause)
					} else {
						time.AfterFunc(when, func() { cancel(cause) })
					}
					err := tc.call(ctx, c)
					if v := memwrite.VerdictOf(err); v.Action != memwrite.GiveBack || !errors.Is(err, cause) || !errors.Is(err, context.Canceled) {
						t.Errorf("cancelled: %v: %v", v, err)
					}
					timed, stop := context.WithTimeoutCause(t.Context(), when, cause)
					defer stop()
					err = tc.call(timed, c)
					if v := memwrite.VerdictOf(err); v.Action != memwrite.RetryAfter || !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("timed out: %v: %v", v, err)
					}
				})
			})
		}
	}
}
