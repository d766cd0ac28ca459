package waiting

import (
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memwrite/memwrite-go/internal/service"
)

var events = flag.Int("events", 4000, "how many events; the figures are stated for 20000")

// figure prints a measured value beside its target and fails the test when the
// target is missed: by anything at 20,000 events, by a twentieth in a smaller
// sample, whose median strays by itself.
func figure(t *testing.T, name string, value float64, op string, target float64) {
	t.Helper()
	word := "ok"
	if !(op == "<=" && value <= target || op == "==" && value == target) {
		word = "short"
		if *events >= 20_000 || value > target*1.05 {
			t.Fail()
		}
	}
	fmt.Printf("figure %s %.4g %s %g %s\n", name, value, op, target, word)
}

func note(name string, value float64) { fmt.Printf("figure %s %.4g - - ok\n", name, value) }

// outcome is what one part measured.
type outcome struct {
	extras   []float64 // milliseconds, sorted
	requests float64   // of one wait
	minute   int       // requests of the busiest one
	limited  int
}

func (o outcome) median() float64 { return o.extras[len(o.extras)/2] }

func (o outcome) mean() float64 {
	sum := 0.0
	for _, x := range o.extras {
		sum += x
	}
	return sum / float64(len(o.extras))
}

// alone waits for n events one after the other on each of 20 clients, so that
// no two waits of a client help or hinder each other.
func alone(t *testing.T, n int, deaf bool) (out outcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		const clients = 20
		var all sync.WaitGroup
		var mu sync.Mutex
		requests := 0
		for i := range clients {
			all.Go(func() {
				s := newServer(uint64(i), deaf, nil)
				c := s.client(t)
				for range n / clients {
					extra := s.wait(t, c)
					mu.Lock()
					out.extras = append(out.extras, extra.Seconds()*1000)
					mu.Unlock()
				}
				mu.Lock()
				requests += len(s.arrivals)
				mu.Unlock()
			})
		}
		all.Wait()
		slices.Sort(out.extras)
		out.requests = float64(requests) / float64(len(out.extras))
	})
	return out
}

// together keeps a hundred waits going on one client for some minutes: as one
// ends, the next begins. The server allows a key what FishMem does.
func together(t *testing.T, minutes int) (out outcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(100, true, service.FishMemRate())
		c := s.client(t)
		end := s.sched.Now().Add(time.Duration(minutes) * time.Minute)
		var all sync.WaitGroup
		var mu sync.Mutex
		for range 100 {
			all.Go(func() {
				for s.sched.Now().Before(end) {
					extra := s.wait(t, c)
					mu.Lock()
					out.extras = append(out.extras, extra.Seconds()*1000)
					mu.Unlock()
				}
			})
		}
		all.Wait()
		slices.Sort(out.extras)
		out.requests = float64(len(s.arrivals)) / float64(len(out.extras))
		out.minute, out.limited = s.busiestMinute(), s.limited
	})
	return out
}

func TestFigures(t *testing.T) {
	t.Run("longpoll", func(t *testing.T) {
		o := alone(t, *events, false)
		figure(t, "wait.longpoll.mean_extra_ms", o.mean(), "<=", 10)
		figure(t, "wait.longpoll.requests", o.requests, "<=", 2.5)
	})
	t.Run("poll", func(t *testing.T) {
		o := alone(t, *events, true)
		figure(t, "wait.poll.median_extra_ms", o.median(), "<=", 200)
		figure(t, "wait.poll.mean_extra_ms", o.mean(), "<=", 300)
		figure(t, "wait.poll.requests", o.requests, "<=", 7.5)
	})
	t.Run("hundred", func(t *testing.T) {
		o := together(t, 5)
		figure(t, "wait.hundred.requests_per_min", float64(o.minute), "<=", 300)
		figure(t, "wait.hundred.rate_limited", float64(o.limited), "==", 0)
		note("wait.hundred.median_extra_ms", o.median())
		note("wait.hundred.mean_extra_ms", o.mean())
		note("wait.hundred.requests", o.requests)
	})
}
