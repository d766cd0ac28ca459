package outage

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/internal/transport"
)

// ledger is a server that fails half of what it gets for a minute, and half of
// those failures after it has written: the answer is then lost on the way. It
// knows a write by its identity, as the service does.
type ledger struct {
	w     *world
	known map[string]bool
	rows  map[string]int // records by message
}

func (l *ledger) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := sleep(req.Context(), latency); err != nil {
		return nil, err
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	fails := l.w.troubled(time.Now()) && l.w.rand.IntN(2) == 0
	late := l.w.rand.IntN(2) == 0
	if key := req.Header.Get("Idempotency-Key"); (!fails || late) && !l.known[key] {
		l.known[key] = true
		l.rows[req.Header.Get("Message")]++
	}
	switch {
	case fails && late:
		return nil, errDropped
	case fails:
		return answer(req, http.StatusServiceUnavailable), nil
	}
	return answer(req, http.StatusOK), nil
}

func answer(req *http.Request, status int) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, Request: req}
}

// redelivered runs callers that work like a queue: one message in flight each,
// a message that failed is delivered again after 1 to 10 s, and only a call
// without an error takes it off the queue.
func redelivered(t *testing.T, callers int, separate bool) (lost, doubled int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{rand: rand.New(rand.NewPCG(3, 4)), start: time.Now(), end: time.Now().Add(time.Minute)}
		l := &ledger{w: w, known: map[string]bool{}, rows: map[string]int{}}
		newClient := func() *transport.Client {
			base, _ := url.Parse("http://server.example")
			c, err := transport.New(transport.Config{
				BaseURL: base, Scheduler: seeded{sched.Real(), w}, Classify: classify,
				HTTPClient: &http.Client{Transport: l},
			})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		shared := newClient()
		acked := make([]int, callers)
		var all sync.WaitGroup
		for i := range callers {
			client := shared
			if separate {
				client = newClient()
			}
			all.Go(func() {
				for time.Now().Before(w.end) {
					message := fmt.Sprintf("m-%d-%d", i, acked[i])
					for deliver(client, message) != nil {
						time.Sleep(time.Second + sched.Jitter(seeded{sched.Real(), w}, 9*time.Second))
					}
					acked[i]++
				}
			})
		}
		all.Wait()
		for i, n := range acked {
			for k := range n {
				switch rows := l.rows[fmt.Sprintf("m-%d-%d", i, k)]; {
				case rows == 0:
					lost++
				case rows > 1:
					doubled++
				}
			}
		}
	})
	return lost, doubled
}

func deliver(c *transport.Client, message string) error {
	req, _ := http.NewRequest(http.MethodPost, "http://server.example/", nil)
	req.Header.Set("Message", message)
	req.Header.Set("Idempotency-Key", message)
	_, err := c.Do(context.Background(), transport.Call{Op: "write", Method: req.Method, URL: req.URL, Header: req.Header, Safe: true})
	return err
}
