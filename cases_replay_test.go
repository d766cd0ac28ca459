package memwrite_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
)

// A kept-alive connection, and a transport that is only a function, hide a body
// that is gone after the first try: every fault that is followed by a second
// try runs over sockets of both kinds.
func TestS22_ReplaysRunOnBothKindsOfConnections(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(http.ResponseWriter, *http.Request){
		"503":     func(w http.ResponseWriter, _ *http.Request) { respond(w, 503, "") },
		"dropped": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "99")
			respond(w, 201, "{")
		},
		"malformed": func(w http.ResponseWriter, _ *http.Request) { respond(w, 200, "{}") },
		"307": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		},
		"308": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusPermanentRedirect)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bothWays(t, func(t *testing.T, opt memwrite.Option) {
				srv := listen(t, func(n int, w http.ResponseWriter, r *http.Request) {
					if n <= 2 {
						fault(w, r)
						return
					}
					respond(w, 202, aReceipt)
				})
				r, err := srv.client(t, opt).AddAsync(t.Context(), theInferred())
				if err != nil || r.Tries != 3 {
					t.Fatal(r, err)
				}
				sums := map[string]int{}
				for _, req := range srv.requests() {
					sums[fmt.Sprintf("%x %s", sha256.Sum256([]byte(req.body)), req.header.Get("Idempotency-Key"))]++
				}
				if len(sums) != 1 || srv.requests()[0].body == "" {
					t.Errorf("the tries differ: %v", sums)
				}
			})
		})
	}
	// And the recipes of replays do the same.
	for file, names := range map[string][]string{
		"cases_identity_test.go": {"TestS15", "TestS17", "TestS18", "TestS21"},
		"cases_waiting_test.go":  {"TestS31"},
		"cases_bodies_test.go":   {"TestS48", "TestS50"},
	} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			body := regexp.MustCompile(`(?s)\nfunc ` + name + `_.*?\n}\n`).Find(source)
			if !strings.Contains(string(body), "bothWays(") {
				t.Errorf("%s runs on one kind of connection", name)
			}
		}
	}
}

// closing counts the bodies a client was given and those it closed.
type closing struct {
	http.RoundTripper
	given, closed atomic.Int64
}

type closingBody struct {
	io.ReadCloser
	once   sync.Once
	closed *atomic.Int64
}

func (b *closingBody) Close() error {
	b.once.Do(func() { b.closed.Add(1) })
	return b.ReadCloser.Close()
}

func (c *closing) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.RoundTripper.RoundTrip(r)
	if err == nil {
		c.given.Add(1)
		resp.Body = &closingBody{ReadCloser: resp.Body, closed: &c.closed}
	}
	return resp, err
}

// Not parallel: it counts the process's goroutines.
func TestS25_ExhaustedCallsLeaveNothingOpen(t *testing.T) {
	before := runtime.NumGoroutine()
	var open sockets
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		respond(w, 503, strings.Repeat("x", 2000))
	}))
	srv.Config.ConnState = open.state
	srv.Start()
	defer srv.Close()
	tr := http.DefaultTransport.(*http.Transport).Clone()
	bodies := &closing{RoundTripper: tr}
	p := quick()
	p.MaxTries, p.NoBudget = 3, true
	c, err := memwrite.New(memwrite.WithMemorySync(srv.URL, msKey), memwrite.WithRetryPolicy(p), memwrite.WithHTTPClient(&http.Client{Transport: bodies}))
	if err != nil {
		t.Fatal(err)
	}
	const workers = 4
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for range 1000 / workers {
				if res, err := c.Add(t.Context(), theNote()); err == nil || res != nil {
					t.Errorf("result %v beside error %v", res, err)
				}
			}
		})
	}
	all.Wait()
	if given, closed := bodies.given.Load(), bodies.closed.Load(); given != 3000 || given != closed {
		t.Errorf("%d bodies, %d closed", given, closed)
	}
	if most := open.most.Load(); most > 4*workers {
		t.Errorf("%d connections at once for %d workers", most, workers)
	}
	tr.CloseIdleConnections()
	settles(t, "connections are left open", func() bool { return open.open.Load() == 0 })
	srv.Close()
	settles(t, fmt.Sprintf("%d goroutines before", before), func() bool { return runtime.NumGoroutine() <= before })
}

// The bubble ends only when every goroutine in it has; timers are counted.
func TestS33_TenThousandRetriedCallsLeaveNoTimer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		timers, n := newCounted(), 0
		c := bubbleClient(t, func(*http.Request) (int, http.Header, string) {
			if n++; n%2 == 1 {
				return 503, nil, ""
			}
			return 201, nil, storedBody
		}, memwrite.WithScheduler(timers))
		for range 10_000 {
			if res, err := c.Add(t.Context(), theNote()); err != nil || res.Tries != 2 {
				t.Fatal(res, err)
			}
		}
		if left := timers.live.Load(); left != 0 {
			t.Errorf("%d timers are left", left)
		}
		before := time.Now()
		synctest.Wait() // would hang, or end the test, on a goroutine that is left
		if time.Since(before) != 0 {
			t.Error("something was still waiting")
		}
	})
}
