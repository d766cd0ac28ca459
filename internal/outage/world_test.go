package outage

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/internal/transport"
)

const latency = 200 * time.Millisecond

// scenario is one run: callers that each start a call every second whatever
// the earlier ones do, and a server that is in trouble for a while.
type scenario struct {
	callers  int
	separate bool // a client for each caller; otherwise one for all
	before   time.Duration
	trouble  time.Duration
	after    time.Duration
	// answer decides about a request that arrives during the trouble.
	answer func(r *rand.Rand) (status int, retryAfter string)
}

// outcome is what a run shows.
type outcome struct {
	started, saved int   // calls started in the trouble, and those that ended stored
	sent           int   // requests in the trouble
	seconds        []int // requests in each second after it
	inside         int   // requests of a client inside its pause
	shut           time.Duration
	clients        int
	s              scenario
}

func (o outcome) amplification() float64 { return float64(o.sent) / float64(o.started) }
func (o outcome) savedShare() float64    { return float64(o.saved) / float64(o.started) }
func (o outcome) shutShare() float64 {
	return o.shut.Seconds() / (o.s.trouble.Seconds() * float64(o.clients))
}

func (o outcome) peak() float64 {
	busiest := 0
	for _, n := range o.seconds {
		busiest = max(busiest, n)
	}
	return float64(busiest) / float64(o.s.callers)
}

// world is the server of a run and its notes.
type world struct {
	s          scenario
	start, end time.Time // of the trouble

	mu   sync.Mutex
	rand *rand.Rand
	out  outcome
}

func (s scenario) run(t *testing.T) (out outcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		w := &world{s: s, rand: rand.New(rand.NewPCG(1, 2))}
		w.start = begin.Add(s.before)
		w.end = w.start.Add(s.trouble)
		w.out.s, w.out.clients = s, 1
		w.out.seconds = make([]int, int(s.after/time.Second)+1)
		if s.separate {
			w.out.clients = s.callers
		}
		clients := make([]*transport.Client, w.out.clients)
		for i := range clients {
			clients[i] = w.client(t)
		}
		var calls sync.WaitGroup
		for i := range s.callers {
			client := clients[i%len(clients)]
			calls.Go(func() {
				time.Sleep(time.Second * time.Duration(i) / time.Duration(s.callers))
				for time.Since(begin) < s.before+s.trouble+s.after {
					calls.Go(func() { w.call(client) })
					time.Sleep(time.Second)
				}
			})
		}
		calls.Wait()
		out = w.out
	})
	return out
}

// client is a client with the defaults.
func (w *world) client(t *testing.T) *transport.Client {
	base, _ := url.Parse("http://server.example")
	var shutAt time.Time
	c, err := transport.New(transport.Config{
		BaseURL:    base,
		Scheduler:  seeded{sched.Real(), w},
		HTTPClient: &http.Client{Transport: &line{w: w}},
		Classify:   classify,
		Observe: func(e transport.Event) { // gate events come one after the other
			w.mu.Lock()
			defer w.mu.Unlock()
			switch {
			case e.Kind == transport.GateShut:
				shutAt = e.Time
			case e.Kind == transport.GateOpened && !shutAt.IsZero():
				w.out.shut += e.Time.Sub(shutAt)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func classify(a *transport.Answer) transport.Decision {
	d := transport.Decision{Reason: "http_" + strconv.Itoa(a.Status)}
	switch {
	case a.Status == http.StatusTooManyRequests:
		d.Class = transport.Throttled
	case a.Status >= 500:
		d.Class = transport.Server
	}
	d.Hint, d.HasHint = transport.ServerWait(a.Header, a.Received)
	return d
}

func (w *world) troubled(at time.Time) bool { return !at.Before(w.start) && at.Before(w.end) }

func (w *world) call(c *transport.Client) {
	counts := w.troubled(time.Now())
	req, _ := http.NewRequest(http.MethodPost, "http://server.example/", nil)
	_, err := c.Do(context.Background(), transport.Call{Op: "write", Method: req.Method, URL: req.URL, Header: req.Header, Safe: true})
	if !counts {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out.started++
	if err == nil {
		w.out.saved++
	}
}

// line is one client's way to the server; it sees what that client was told.
type line struct {
	w     *world
	quiet time.Time // end of the pause the client was told of
	since time.Time // and when it was told
}

func (l *line) RoundTrip(req *http.Request) (*http.Response, error) {
	now, w := time.Now(), l.w
	status, retryAfter := http.StatusOK, ""
	w.mu.Lock()
	switch {
	case w.troubled(now):
		w.out.sent++
		status, retryAfter = w.s.answer(w.rand)
	case !now.Before(w.end):
		if second := int(now.Sub(w.end) / time.Second); second < len(w.out.seconds) {
			w.out.seconds[second]++
		}
	}
	if now.After(l.since) && now.Before(l.quiet) {
		w.out.inside++
	}
	w.mu.Unlock()

	if err := sleep(req.Context(), latency); err != nil {
		return nil, err
	}
	h := http.Header{}
	if retryAfter != "" {
		h.Set("Retry-After", retryAfter)
		n, _ := strconv.Atoi(retryAfter)
		w.mu.Lock()
		if l.quiet.Before(time.Now()) {
			l.since = time.Now()
		}
		l.quiet = time.Now().Add(time.Duration(n) * time.Second)
		w.mu.Unlock()
	}
	return &http.Response{StatusCode: status, Header: h, Body: http.NoBody, Request: req}, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// seeded is the bubble's clock with the run's own random numbers.
type seeded struct {
	sched.Scheduler
	w *world
}

func (s seeded) Uint64() uint64 {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.w.rand.Uint64()
}

// errDropped is an answer that never arrived.
var errDropped = errors.Join(errors.New("connection reset"), io.ErrUnexpectedEOF)
