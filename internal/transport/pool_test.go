package transport

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// net/http gives a connection up when a busy machine takes more than 50 ms to
// confirm a write, so one extra connection proves nothing: a client that
// flushes its pool needs eleven, every time.
func TestAFailedCallLeavesThePoolAlone(t *testing.T) {
	t.Parallel()
	var n int64
	for range 5 {
		if n = connectionsOfFailingCalls(t); n == 1 {
			return
		}
	}
	t.Errorf("%d connections, want 1", n)
}

// connectionsOfFailingCalls makes 20 calls of which every second fails.
func connectionsOfFailingCalls(t *testing.T) int64 {
	t.Helper()
	big := strings.Repeat("x", 200<<10) // beyond what is kept, within what is drained
	s := newWire(t, false, func(w http.ResponseWriter, r *http.Request, n int) {
		if n%4 != 0 { // a call that works in one try, then one that fails in three
			w.WriteHeader(503)
			_, _ = io.WriteString(w, big)
		}
	})
	c := s.client(t, Policy{MaxTries: 3, Gate: GatePolicy{Off: true}, Budget: BudgetPolicy{Off: true}})
	for i := range 20 {
		if _, err := s.post(t, c); (err != nil) != (i%2 == 1) {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	return s.conns.Load()
}

func TestManyCallsAtOnceWithTimeouts(t *testing.T) {
	t.Parallel()
	s := newWire(t, false, func(_ http.ResponseWriter, r *http.Request, n int) {
		if n%8 == 0 {
			<-r.Context().Done()
		}
	})
	c := s.client(t, Policy{TryTimeout: 200 * time.Millisecond})
	var calls sync.WaitGroup
	for range 16 {
		calls.Go(func() {
			for range 4 {
				if _, err := s.post(t, c); err != nil {
					t.Error(err)
				}
			}
		})
	}
	calls.Wait()
}

// A client that many workers share keeps a connection for each of them.
func TestWorkersKeepTheirConnections(t *testing.T) {
	t.Parallel()
	const workers, rounds = 16, 40
	s := newWire(t, false, func(http.ResponseWriter, *http.Request, int) {})
	c := s.client(t, Policy{})
	for range rounds { // all at once, then all idle
		var calls sync.WaitGroup
		for range workers {
			calls.Go(func() {
				if _, err := s.post(t, c); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
	}
	if n := s.conns.Load(); n > workers*rounds/2 {
		t.Errorf("%d connections for %d calls", n, workers*rounds)
	}
}
