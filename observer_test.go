package memwrite_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
)

// notebook keeps what an observer is told, in the order it was told.
type notebook struct {
	mu  sync.Mutex
	all []memwrite.Observation
}

func (n *notebook) Observe(o memwrite.Observation) {
	n.mu.Lock()
	n.all = append(n.all, o)
	n.mu.Unlock()
}

func (n *notebook) lines() (lines []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, o := range n.all {
		line := string(o.Kind)
		if o.Try > 0 {
			line += fmt.Sprint(" ", o.Try)
		}
		if o.Status > 0 {
			line += fmt.Sprint(" ", o.Status)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestAnObserverSeesACallInOrder(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, opt memwrite.Option) {
		srv := listen(t, func(n int, w http.ResponseWriter, r *http.Request) {
			switch n {
			case 1:
				respond(w, 503, "")
			case 2:
				panic(http.ErrAbortHandler)
			case 3:
				http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
			default:
				respond(w, 201, storedBody)
			}
		})
		var seen notebook
		if _, err := srv.client(t, opt, memwrite.WithObserver(&seen)).Add(t.Context(), theNote()); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"try_started 1", "try_done 1 503", "retry 1", "try_started 2", "try_done 2", "retry 2",
			"try_started 3", "try_done 3 307", "try_started 4", "try_done 4 201",
		}
		if got := seen.lines(); !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
		for i, o := range seen.all {
			if o.Op != "Add" || o.Service != "memorysync" || o.Time.IsZero() || i > 0 && o.Time.Before(seen.all[i-1].Time) {
				t.Errorf("%d: %+v", i, o)
			}
			if o.Kind == memwrite.ObserveRetry && (o.Reason == "" || o.Class == "" || o.Wait <= 0) {
				t.Errorf("a retry without its reason: %+v", o)
			}
		}
	})
}

// What happens to the gate and the pause is told in the order it happened, one
// at a time, to an observer that calls the client from within.
func TestAnObserverSeesTheGateInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var c *memwrite.Client
		var gate []string
		var inside, calls atomic.Int64
		c = bubbleClient(t, func(r *http.Request) (int, http.Header, string) {
			time.Sleep(10 * time.Millisecond)
			since := time.Since(begin) % time.Minute
			switch {
			case since < 20*time.Second:
				return 503, nil, ""
			case since < 30*time.Second && calls.Add(1)%50 == 0:
				return 429, http.Header{"Retry-After": {"3"}}, ""
			}
			return 201, nil, storedBody
		}, memwrite.WithObserver(memwrite.ObserverFunc(func(o memwrite.Observation) {
			if o.Op != "" || o.Service != "memorysync" { // each service has a gate of its own
				return
			}
			if inside.Add(1) != 1 {
				t.Error("two events of the gate at once")
			}
			defer inside.Add(-1)
			gate = append(gate, string(o.Kind))
			if o.Kind == memwrite.ObserveDrained {
				c.Usage(t.Context()) // of the other service
				c.Add(t.Context(), theNote())
			}
		})))
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 7 * time.Millisecond)
				for time.Since(begin) < 3*time.Minute {
					c.Add(t.Context(), theNote())
					time.Sleep(100 * time.Millisecond)
				}
			})
		}
		all.Wait()
		// Each is a step from where the last one left the gate.
		steps := map[string]string{
			" gate_shut": "shut", " paused": "paused", "shut gate_opened": "open", "shut paused": "paused",
			"paused resumed": "open", "paused gate_shut": "shut", "paused paused": "paused",
			"open drained": "", "open gate_shut": "shut", "open paused": "paused",
		}
		state := ""
		for i, kind := range gate {
			next, ok := steps[state+" "+kind]
			if !ok {
				t.Fatalf("event %d is %s after %s: %s", i, kind, state, strings.Join(gate[max(0, i-5):i+1], ", "))
			}
			if state = next; state == "open" && (i+1 == len(gate) || gate[i+1] != "drained") {
				state = "" // nobody was waiting
			}
		}
		if !slices.Contains(gate, "gate_shut") || !slices.Contains(gate, "paused") || !slices.Contains(gate, "drained") {
			t.Errorf("the scenario had too little in it: %v", gate)
		}
	})
}

// An observer or a transport that panics takes its own call with it and no
// other: the gate is not left waiting for the probe it was.
func TestAPanicInAProbeLeavesTheWayOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin, panicked := time.Now(), false
		c := bubbleClient(t, func(*http.Request) (int, http.Header, string) {
			switch since := time.Since(begin); {
			case since < 10*time.Second:
				return 503, nil, ""
			case !panicked:
				panicked = true
				panic("a transport of somebody else")
			}
			return 201, nil, storedBody
		})
		var all sync.WaitGroup
		var stored, lost atomic.Int64
		for range 20 {
			all.Go(func() {
				defer func() {
					if recover() != nil {
						lost.Add(1)
					}
				}()
				if _, err := c.Add(t.Context(), theNote()); err == nil {
					stored.Add(1)
				}
			})
		}
		all.Wait()
		if stored.Load() != 19 || lost.Load() != 1 {
			t.Errorf("%d stored, %d lost", stored.Load(), lost.Load())
		}
	})
}

func TestAPanicInAPageLeavesTheOtherWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin, panicked := time.Now(), false
		c := bubbleClient(t, func(r *http.Request) (int, http.Header, string) {
			s := memwrite.Pending
			if time.Since(begin) > 20*time.Second {
				s = memwrite.Succeeded
			}
			if r.URL.Path != "/v1/events" {
				return 200, nil, eventBody(strings.TrimPrefix(r.URL.Path, "/v1/events/"), s)
			}
			if !panicked {
				panicked = true
				panic("a transport of somebody else")
			}
			var all []string
			for i := range 10 {
				all = append(all, eventBody(fmt.Sprint("task_", i), s))
			}
			return 200, nil, `{"results":[` + strings.Join(all, ",") + `]}`
		})
		var all sync.WaitGroup
		var ended atomic.Int64
		for i := range 10 {
			all.Go(func() {
				defer func() { recover() }()
				if _, err := c.WaitForEvent(t.Context(), fmt.Sprint("task_", i)); err == nil {
					ended.Add(1)
				}
			})
		}
		all.Wait()
		if !panicked || ended.Load() != 9 || time.Since(begin) > time.Minute {
			t.Errorf("%d of 9 waits ended after %v, panicked %v", ended.Load(), time.Since(begin), panicked)
		}
	})
}
