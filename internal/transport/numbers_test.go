package transport

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/sched"
)

// dice is a scheduler whose random numbers a test chooses.
type dice struct {
	sched.Scheduler
	mu   sync.Mutex
	next func() uint64
}

func (d *dice) Uint64() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.next()
}

func highest() uint64 { return 1<<64 - 1 }
func lowest() uint64  { return 0 }

func TestBackOffRangeDoublesUpToTheCapAndStartsAgain(t *testing.T) {
	t.Parallel()
	b := newFullJitter(&dice{next: highest}, time.Second, 20*time.Second, 20*time.Millisecond)
	for round := range 2 {
		for i, want := range []time.Duration{1, 2, 4, 8, 16, 20, 20, 20} {
			if got := b.NextBackOff().Round(time.Millisecond); got != want*time.Second {
				t.Errorf("round %d, wait %d: got %v, want %v", round, i, got, want*time.Second)
			}
		}
		b.Reset()
	}
}

func TestNoBackOffIsBelowTheFloor(t *testing.T) {
	t.Parallel()
	b := newFullJitter(&dice{next: lowest}, time.Second, 20*time.Second, 20*time.Millisecond)
	for range 100 {
		if got := b.NextBackOff(); got != 20*time.Millisecond {
			t.Fatalf("got %v", got)
		}
	}
}

// A thousand clients that failed together come back spread over the whole
// range: chi-square over ten bins, 9 degrees of freedom, 0.1 % at 27.9.
func TestFirstWaitsOfManyClientsSpreadOverTheRange(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	var bins [10]float64
	for range 1000 {
		b := newFullJitter(&dice{next: r.Uint64}, time.Second, 20*time.Second, time.Nanosecond)
		bins[b.NextBackOff()*10/(time.Second+1)]++
	}
	chi := 0.0
	for _, n := range bins {
		chi += (n - 100) * (n - 100) / 100
	}
	if chi > 27.9 {
		t.Errorf("chi-square %.1f, bins %v", chi, bins)
	}
}

func TestBudget(t *testing.T) {
	t.Parallel()
	type step struct {
		do   string // retry, throttled, success:n
		give int
		ok   bool
		left int
	}
	for name, steps := range map[string][]step{
		"a retry that works costs nothing": {{"retry", 0, true, 16}, {"success", 14, true, 30}},
		"a throttled retry is cheaper":     {{"throttled", 0, true, 25}, {"success", 5, true, 30}},
		"never more than it began with":    {{"success", 0, true, 30}, {"success", 14, true, 30}},
		"empty, then filled by successes": {
			{"retry", 0, true, 16}, {"retry", 0, true, 2}, {"retry", 0, false, 2}, {"throttled", 0, false, 2},
			{"success", 0, true, 3}, {"success", 0, true, 4}, {"success", 0, true, 5}, {"throttled", 0, true, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBudget(BudgetPolicy{Tokens: 30, Cost: 14, Throttled: 5})
			for i, s := range steps {
				ok := true
				if s.do == "success" {
					b.success(s.give)
				} else {
					_, ok = b.take(s.do == "throttled")
				}
				if ok != s.ok || b.tokens != s.left {
					t.Fatalf("step %d %s: ok %v, %d left; want %v, %d", i, s.do, ok, b.tokens, s.ok, s.left)
				}
			}
		})
	}
}

func TestRateIsThatOfTheLastTenWholeSeconds(t *testing.T) {
	t.Parallel()
	start := time.Unix(0, 0)
	w := rateWindow{start: start}
	for i := range 200 { // 20 s of ten a second
		w.add(start.Add(time.Duration(i) * 100 * time.Millisecond))
	}
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	for _, tc := range []struct{ second, want float64 }{{19.95, 10}, {20.5, 10}, {25, 5}, {31, 0}, {500, 0}} {
		if got, _ := w.perSecond(at(tc.second)); got != tc.want {
			t.Errorf("after %v s: %v a second, want %v", tc.second, got, tc.want)
		}
	}
}

func TestRateFollowsTheLastTwoSecondsUpwards(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		counts []int // calls in each second before the running one
		want   float64
		sure   bool
	}{
		{"steady", []int{10, 10, 10, 10, 10, 10, 10, 10, 10, 10}, 10, true},
		{"growing", []int{1, 1, 1, 1, 1, 1, 1, 1, 10, 30}, 20, true},
		{"falling", []int{30, 10, 10, 10, 10, 10, 5, 5, 5, 5}, 10, true},
		{"a burst after nothing", []int{0, 0, 0, 0, 0, 0, 0, 0, 0, 50}, 25, false},
		{"young", []int{8}, 8, false},
		{"two seconds old", []int{8, 20}, 14, false},
	} {
		start := time.Unix(0, 0)
		w := rateWindow{start: start}
		for second, n := range tc.counts {
			for range n {
				w.add(start.Add(time.Duration(second)*time.Second + time.Millisecond))
			}
		}
		got, sure := w.perSecond(start.Add(time.Duration(len(tc.counts))*time.Second + time.Millisecond))
		if got != tc.want || sure != tc.sure {
			t.Errorf("%s: %v a second, sure %v; want %v, %v", tc.name, got, sure, tc.want, tc.sure)
		}
	}
}
