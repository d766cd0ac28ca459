package memwrite_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
)

// soaked is a server that fails a third of what it gets, in every way a server
// and a network have, half of the time after it has stored the write.
type soaked struct {
	mu     sync.Mutex
	rand   *rand.Rand
	stored map[string]bool
	faults map[string]int
}

func (s *soaked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var sent struct {
		Ref string `json:"client_ref"`
	}
	if json.NewDecoder(r.Body).Decode(&sent) != nil { // the caller went away
		return
	}
	s.mu.Lock()
	fault, late := s.rand.IntN(200), s.rand.IntN(2) == 0
	if late || fault >= 70 {
		s.stored[sent.Ref] = true
	}
	name := ""
	switch {
	case fault < 10:
		name = "drop"
	case fault < 20:
		name = "reset"
	case fault < 30:
		name = "truncate"
	case fault < 31:
		name = "stall"
	case fault < 33:
		name = "stall in the body"
	case fault < 70:
		name = "503"
	}
	s.faults[name]++
	s.mu.Unlock()
	switch name {
	case "drop":
		panic(http.ErrAbortHandler)
	case "reset":
		if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
			c.(*net.TCPConn).SetLinger(0)
			c.Close()
		}
	case "truncate":
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, `{"id":`)
	case "stall":
		<-r.Context().Done()
	case "stall in the body":
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, `{"id":`)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case "503":
		respond(w, 503, `{"detail":"draining"}`)
	default:
		respond(w, 201, storedBody)
	}
}

// Ten thousand calls through every fault, a tenth of them given up by their
// callers, leave nothing behind. Not parallel: it counts the process's
// goroutines.
func TestTenThousandCallsLeaveNothingBehind(t *testing.T) {
	calls, workers := 10_000, 32
	if testing.Short() {
		calls = 1_000
	}
	before := runtime.NumGoroutine()
	server := &soaked{rand: rand.New(rand.NewPCG(1, 2)), stored: map[string]bool{}, faults: map[string]int{}}
	var open sockets
	srv := httptest.NewUnstartedServer(server)
	srv.Config.ConnState = open.state
	srv.Start()
	defer srv.Close()
	timers := newCounted()
	c, err := memwrite.New(
		memwrite.WithMemorySync(srv.URL, msKey), memwrite.WithScheduler(timers),
		memwrite.WithRetryPolicy(memwrite.RetryPolicy{
			Base: time.Millisecond, ThrottledBase: time.Millisecond, Floor: time.Millisecond, TryTimeout: 400 * time.Millisecond, NoBudget: true,
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	acked, ends := map[string]bool{}, map[string]int{}
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			random := rand.New(rand.NewPCG(3, uint64(i)))
			for n := i; n < calls; n += workers {
				ctx, cancel := context.WithCancel(t.Context())
				if n%10 == 0 {
					time.AfterFunc(time.Duration(random.IntN(600))*time.Microsecond, cancel)
				}
				req := theNote()
				req.Ref = memwrite.NewRef("note", fmt.Sprint(n))
				_, err := c.Add(ctx, req)
				cancel()
				mu.Lock()
				var e *memwrite.Error
				switch {
				case err == nil:
					acked[req.Ref.String()] = true
					ends["stored"]++
				case errors.As(err, &e):
					ends[e.Kind.String()]++
				default:
					t.Errorf("call %d: %v", n, err)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	// A call that was cancelled may have a request on its way still.
	server.mu.Lock()
	stored, faults := maps.Clone(server.stored), maps.Clone(server.faults)
	server.mu.Unlock()
	t.Logf("ends %v, faults %v, %d connections opened, %d at once", ends, faults, open.opened.Load(), open.most.Load())
	if ends["stored"] < calls/2 {
		t.Errorf("only %d of %d calls ended stored", ends["stored"], calls)
	}
	for ref := range acked {
		if !stored[ref] {
			t.Errorf("%s was acknowledged and is not stored", ref)
		}
	}
	if n := timers.live.Load(); n != 0 {
		t.Errorf("%d timers, waits and goroutines of the client are left", n)
	}
	c.Close()
	settles(t, "connections are left open", func() bool { return open.open.Load() == 0 })
	srv.Close()
	settles(t, fmt.Sprintf("%d goroutines before", before), func() bool { return runtime.NumGoroutine() <= before })
}
