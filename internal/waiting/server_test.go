package waiting

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/internal/service"
)

const secret = "fm_waiting"

// server is the reference server's HTTP in this process, in front of tasks
// that play a script. A deaf one does not know Prefer, as the live service.
type server struct {
	tasks *tasks
	http  *service.Service
	sched sched.Scheduler
	deaf  bool

	mu       sync.Mutex
	arrivals []time.Time
	limited  int // requests it answered 429
}

func newServer(seed uint64, deaf bool, rates []service.Window) *server {
	s := &seeded{Scheduler: sched.Real(), rand: rand.New(rand.NewPCG(seed, 5))}
	// A server that is only polled shows PENDING until an attempt ends: the
	// start of an attempt tells a waiting caller nothing. The reference server
	// shows RUNNING too, and a held request ends with it.
	b := newTasks(s, seed, !deaf)
	keys := service.NewKeys(service.NewKey(secret, "w", service.ServiceFishMem,
		service.ScopeMemoryRead, service.ScopeMemoryWrite, service.ScopeOperationsRead))
	return &server{
		tasks: b, sched: s, deaf: deaf,
		http: service.New(b, keys, s, func(string) bool { return false }, service.Options{FishMemRates: rates}),
	}
}

// seeded is the bubble's clock with the run's own random numbers.
type seeded struct {
	sched.Scheduler
	mu   sync.Mutex
	rand *rand.Rand
}

func (s *seeded) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rand.Uint64()
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.arrivals = append(s.arrivals, s.sched.Now())
	s.mu.Unlock()
	in := r.Clone(r.Context())
	in.RemoteAddr = "127.0.0.1:1"
	if in.Body == nil {
		in.Body = http.NoBody
	}
	if s.deaf {
		in.Header.Del("Prefer")
	}
	out := httptest.NewRecorder()
	s.http.ServeHTTP(out, in)
	if r.Context().Err() != nil {
		return nil, context.Cause(r.Context())
	}
	resp := out.Result()
	resp.Request = r
	if resp.StatusCode == http.StatusTooManyRequests {
		s.mu.Lock()
		s.limited++
		s.mu.Unlock()
	}
	return resp, nil
}

// busiestMinute is the most requests that arrived within 60 s of each other.
func (s *server) busiestMinute() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortFunc(s.arrivals, time.Time.Compare)
	most, first := 0, 0
	for last, at := range s.arrivals {
		for at.Sub(s.arrivals[first]) >= time.Minute {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}

func (s *server) client(t *testing.T) *memwrite.Client {
	t.Helper()
	c, err := memwrite.New(
		memwrite.WithFishMem("http://server.example", secret),
		memwrite.WithHTTPClient(&http.Client{Transport: s}),
		memwrite.WithScheduler(s.sched),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// wait waits for a task that begins now, and gives how long after its end the
// client knew.
func (s *server) wait(t *testing.T, c *memwrite.Client) time.Duration {
	id, l := s.tasks.begin()
	ev, err := c.WaitForEvent(context.Background(), id)
	extra := s.sched.Now().Sub(l.end())
	if err != nil {
		t.Errorf("event %s: %v", id, err)
	} else if ev.Status != memwrite.Succeeded || extra < 0 {
		t.Errorf("event %s: %s, %v after its end", id, ev.Status, extra)
	}
	return extra
}
