package memwrite_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
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

func TestS24_TriesShareOneSocket(t *testing.T) {
	t.Parallel()
	var opened atomic.Int64
	n := 0
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n++; n%2 == 1 {
			respond(w, 503, strings.Repeat("x", 10_000))
			return
		}
		respond(w, 201, storedBody)
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	srv.Start()
	t.Cleanup(srv.Close)
	c, err := memwrite.New(memwrite.WithMemorySync(srv.URL, msKey), memwrite.WithRetryPolicy(quick()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	for range 20 {
		if _, err := c.Add(t.Context(), theNote()); err != nil {
			t.Fatal(err)
		}
	}
	if opened.Load() != 1 {
		t.Errorf("%d connections", opened.Load())
	}
}

func TestS26_AFailedCallKeepsThePool(t *testing.T) {
	t.Parallel()
	var opened atomic.Int64
	n := 0
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n++; n%2 == 1 {
			respond(w, 400, `{"error":"no"}`)
			return
		}
		respond(w, 201, storedBody)
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	srv.Start()
	t.Cleanup(srv.Close)
	c, err := memwrite.New(memwrite.WithMemorySync(srv.URL, msKey))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	for range 20 {
		c.Add(t.Context(), theNote())
	}
	if opened.Load() != 1 {
		t.Errorf("%d connections", opened.Load())
	}
}

func TestS28_ManyGoroutinesOnAFreshClient(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n%3 == 0 {
			respond(w, 503, "")
			return
		}
		respond(w, 201, storedBody)
	})
	c := srv.client(t)
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			if _, err := c.Add(t.Context(), theNote()); err != nil && !errors.Is(err, memwrite.ErrServer) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestS30_ASlowBodyArrivesWhole(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		big := `{"id":1,"text":"` + strings.Repeat("x", 1<<20) + `"}`
		c := bubbleClient(t, func(*http.Request) (int, http.Header, string) {
			time.Sleep(20 * time.Second)
			return 201, nil, big
		})
		res, err := c.Add(t.Context(), theNote())
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
	c := srv.client(t, memwrite.WithHTTPClient(&http.Client{Transport: tr, Timeout: 100 * time.Millisecond}))
	res, err := c.Add(t.Context(), theNote())
	if err != nil || res.Tries != 2 {
		t.Error(res, err)
	}
}

// Loopback hosts never go through HTTP_PROXY, and the variable is read once a
// process, so the proxy is given to a clone here.
func TestS55_AProxyIsUsed(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) { respond(w, 201, storedBody) })
	proxy, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	tr := http.DefaultTransport.(*http.Transport).Clone()
	tr.Proxy = http.ProxyURL(proxy)
	t.Cleanup(tr.CloseIdleConnections)
	c, err := memwrite.New(memwrite.WithMemorySync("http://memorysync.invalid", msKey), memwrite.WithHTTPClient(&http.Client{Transport: tr}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Add(t.Context(), theNote()); err != nil || len(srv.requests()) != 1 {
		t.Error(err)
	}
}
