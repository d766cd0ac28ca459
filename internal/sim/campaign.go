package sim

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Totals is what many schedules came to.
type Totals struct {
	Schedules, Steps, Ops, Crashes, Violations int
	Faults                                     map[Kind]int
	Points                                     map[string]int
	First                                      *Result // of the wanted violation with the lowest seed
	Took                                       time.Duration
	want                                       string
}

// Campaign lives through n schedules from a base seed on, or as many as fit
// into a time when n is 0, on so many workers, which worker makes. The first
// violation ends it; with want the first of that invariant.
func Campaign(worker func() *Worker, base uint64, n int, most time.Duration, workers int, want string) Totals {
	out := Totals{want: want, Faults: map[Kind]int{}, Points: map[string]int{}}
	var mu sync.Mutex
	var next atomic.Int64
	var stop atomic.Bool
	began := time.Now()
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			h := worker()
			for !stop.Load() {
				i := int(next.Add(1)) - 1
				if n > 0 && i >= n || most > 0 && time.Since(began) > most {
					return
				}
				res := h.Run(NewScript(base+uint64(i)), false)
				mu.Lock()
				out.add(res)
				mu.Unlock()
				if res.Violation != nil && (want == "" || res.Violation.Invariant == want) {
					stop.Store(true)
				}
			}
		})
	}
	wait.Wait()
	out.Took = time.Since(began)
	return out
}

func (t *Totals) add(r *Result) {
	t.Schedules++
	t.Steps += r.Steps
	t.Ops += r.Ops
	t.Crashes += r.Crashes
	for k, c := range r.Faults {
		t.Faults[k] += c
	}
	for p, c := range r.Points {
		t.Points[p] += c
	}
	if r.Violation != nil {
		t.Violations++
		if t.First == nil || better(r, t.First, t.want) {
			t.First = r
		}
	}
}

func better(r, than *Result, want string) bool {
	if a, b := r.Violation.Invariant == want, than.Violation.Invariant == want; a != b {
		return a
	}
	return r.Script.Seed < than.Script.Seed
}

// Print writes what happened: a line of totals, and how often each kind of
// fault struck; least is how many schedules a second should be lived through.
func (t *Totals) Print(w io.Writer, least float64) {
	faults := 0
	for _, k := range slices.Sorted(func(yield func(string) bool) {
		for k := range t.Faults {
			if !yield(string(k)) {
				return
			}
		}
	}) {
		faults += t.Faults[Kind(k)]
		fmt.Fprintf(w, "fault %s %d\n", k, t.Faults[Kind(k)])
	}
	for _, p := range sortedKeys(t.Points) {
		fmt.Fprintf(w, "fault %s %d\n", p, t.Points[p])
	}
	n := float64(max(t.Schedules, 1))
	rarest := t.Schedules
	for _, list := range kindsAt {
		for _, k := range list.kinds {
			rarest = min(rarest, t.Faults[k])
		}
	}
	rate := float64(t.Schedules) / t.Took.Seconds()
	figure(w, "sim_operations_per_schedule", float64(t.Ops)/n, 40)
	figure(w, "sim_faults_per_schedule", float64(faults)/n, 5)
	figure(w, "sim_rarest_fault_per_thousand_schedules", float64(rarest)/n*1000, 10)
	figure(w, "sim_schedules_per_second", rate, least)
	fmt.Fprintf(w, "schedules=%d steps=%d crashes=%d violations=%d per_second=%.0f\n", t.Schedules, t.Steps, t.Crashes, t.Violations, rate)
}

func figure(w io.Writer, name string, value, least float64) {
	word := "ok"
	if value < least {
		word = "short"
	}
	fmt.Fprintf(w, "figure %s %.4g >= %g %s\n", name, value, least, word)
}

// Replay lives through a seed several times and says whether every operation
// log has the same hash.
func Replay(h *Worker, seed uint64, times int) (hash uint64, same bool) {
	first := h.Run(NewScript(seed), false).Hash
	for range times - 1 {
		if h.Run(NewScript(seed), false).Hash != first {
			return first, false
		}
	}
	return first, true
}
