package memwrite_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/internal/sched"
)

func TestS12_TheBudgetRefillsBySuccesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fail := true
		n := 0
		c := bubbleClient(t, func(*http.Request) (int, http.Header, string) {
			n++
			if fail {
				return 503, nil, ""
			}
			return 201, nil, storedBody
		}, memwrite.WithRetryPolicy(memwrite.RetryPolicy{NoGate: true}))
		for range 50 {
			c.Add(t.Context(), theNote())
		}
		n = 0
		c.Add(t.Context(), theNote())
		if n != 1 {
			t.Errorf("%d tries on an empty budget", n)
		}
		fail = false
		for range 60 {
			c.Add(t.Context(), theNote())
		}
		fail, n = true, 0
		c.Add(t.Context(), theNote())
		if n < 2 {
			t.Error("no retry after the successes")
		}
	})
}

// The bucket's scope is one client and one service.
func TestS14_FewFailuresStarveNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		c := bubbleClient(t, func(*http.Request) (int, http.Header, string) {
			if n.Add(1)%100 == 0 {
				return 503, nil, ""
			}
			return 201, nil, storedBody
		})
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				for range 20 {
					if _, err := c.Add(t.Context(), theNote()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	})
}

// one makes 20 calls over a socket of its own and tells how many connections
// that took. net/http gives one up when a busy machine takes more than 50 ms to
// confirm a write, so callers ask again before they blame the client.
func one(t *testing.T, answer func(n int64, w http.ResponseWriter), opts ...memwrite.Option) int64 {
	t.Helper()
	for attempt := 1; ; attempt++ {
		var open sockets
		var n atomic.Int64
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			answer(n.Add(1), w)
		}))
		srv.Config.ConnState = open.state
		srv.Start()
		tr := http.DefaultTransport.(*http.Transport).Clone()
		bodies := &closing{RoundTripper: tr}
		c, err := memwrite.New(append([]memwrite.Option{
			memwrite.WithMemorySync(srv.URL, msKey), memwrite.WithRetryPolicy(quick()), memwrite.WithHTTPClient(&http.Client{Transport: bodies}),
		}, opts...)...)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			c.Add(t.Context(), theNote())
		}
		if given, closed := bodies.given.Load(), bodies.closed.Load(); given != closed || given != n.Load() {
			t.Errorf("%d answers, %d bodies closed", given, closed)
		}
		tr.CloseIdleConnections()
		srv.Close()
		if opened := open.opened.Load(); opened == 1 || attempt == 5 {
			return opened
		}
	}
}

func TestS24_TriesShareOneSocket(t *testing.T) {
	t.Parallel()
	opened := one(t, func(n int64, w http.ResponseWriter) {
		if n%2 == 1 {
			respond(w, 503, strings.Repeat("x", 10_000))
			return
		}
		respond(w, 201, storedBody)
	})
	if opened != 1 {
		t.Errorf("%d connections", opened)
	}
}

func TestS26_AFailedCallKeepsThePool(t *testing.T) {
	t.Parallel()
	opened := one(t, func(n int64, w http.ResponseWriter) {
		if n%2 == 1 {
			respond(w, 400, `{"error":"no"}`)
			return
		}
		respond(w, 201, storedBody)
	})
	if opened != 1 {
		t.Errorf("%d connections", opened)
	}
}

// meddler changes the headers of the request it is given, which a RoundTripper
// must not do and some do, while the transport may still be writing the last.
type meddler struct{ http.RoundTripper }

func (m meddler) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Add("Content-Type", "text/plain")
	r.Header.Add("X-End-User-Id", "somebody else")
	r.Header.Set("Traceparent", "00-1")
	return m.RoundTripper.RoundTrip(r)
}

func TestS28_ManyGoroutinesOnAFreshClient(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n%16 == 0 { // longer than the try's timeout
			<-r.Context().Done()
			return
		}
		if n%3 == 0 {
			respond(w, 503, "")
			return
		}
		respond(w, 201, storedBody)
	})
	tr := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(tr.CloseIdleConnections)
	p := quick()
	p.TryTimeout = 250 * time.Millisecond
	c := srv.client(t, memwrite.WithRetryPolicy(p), memwrite.WithHTTPClient(&http.Client{Transport: meddler{tr}}))
	var zero memwrite.Client
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			if _, err := c.Add(t.Context(), theNote()); err != nil && !errors.Is(err, memwrite.ErrServer) && !errors.Is(err, memwrite.ErrUnknownOutcome) {
				t.Error(err)
			}
			if _, err := zero.Add(t.Context(), theNote()); !errors.Is(err, memwrite.ErrInvalidInput) {
				t.Error(err)
			}
			if _, err := zero.AddTurn(t.Context(), theTurn()); !errors.Is(err, memwrite.ErrInvalidInput) {
				t.Error(err)
			}
			if _, err := zero.WaitForEvent(t.Context(), "task_1"); !errors.Is(err, memwrite.ErrInvalidInput) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, r := range srv.requests() {
		if len(r.header.Values("Content-Type")) != 2 || len(r.header.Values("X-End-User-Id")) != 2 || len(r.header.Values("Memwrite-Try")) != 1 {
			t.Errorf("what one try was given stands in another: %v", r.header)
			break
		}
	}
}

func TestS30_ASlowBodyArrivesWhole(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, opt memwrite.Option) {
		srv := listen(t, func(_ int, w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(201)
			io.WriteString(w, `{"id":1,"text":"`)
			for range 16 {
				io.WriteString(w, strings.Repeat("x", 64<<10))
				w.(http.Flusher).Flush()
				sched.Sleep(r.Context(), sched.Real(), 5*time.Millisecond)
			}
			io.WriteString(w, `"}`)
		})
		p := quick()
		p.TryTimeout = 20 * time.Second
		res, err := srv.client(t, opt, memwrite.WithRetryPolicy(p)).Add(t.Context(), theNote())
		if err != nil || len(res.Memory.Text) != 1<<20 || res.Tries != 1 {
			t.Error(err)
		}
	})
}

// A Timeout of the caller's http.Client bounds one try and is tried again.
func TestS32_ATimeoutOfTheHTTPClientBoundsATry(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 1 {
			<-r.Context().Done()
			return
		}
		respond(w, 201, storedBody)
	})
	tr := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(tr.CloseIdleConnections)
	c := srv.client(t, memwrite.WithHTTPClient(&http.Client{Transport: tr, Timeout: 400 * time.Millisecond}))
	res, err := c.Add(t.Context(), theNote())
	if err != nil || res.Tries != 2 {
		t.Error(res, err)
	}
}
