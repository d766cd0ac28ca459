package sim

import (
	"bytes"
	"strings"
	"testing"
)

func TestSchedulesKeepEveryInvariant(t *testing.T) {
	t.Parallel()
	n := 300
	if testing.Short() {
		n = 60
	}
	totals := Campaign(NewWorker, 1, n, 0, 2, "")
	if r := totals.First; r != nil {
		t.Fatalf("make sim SEED=%d: %v", r.Script.Seed, r.Violation)
	}
	faults := 0
	for _, c := range totals.Faults {
		faults += c
	}
	if totals.Ops < 40*n || faults < 5*n {
		t.Errorf("%d operations and %d faults in %d schedules: too tame to find anything", totals.Ops, faults, n)
	}
}

func TestASeedIsALife(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		if _, same := Replay(NewWorker(), 1000+seed, 10); !same {
			t.Errorf("seed %d lives differently each time", 1000+seed)
		}
	}
	one, _ := Replay(NewWorker(), 1, 1)
	if other, _ := Replay(NewWorker(), 2, 1); one == other {
		t.Error("two seeds have one log")
	}
}

// A failure is written down and gets smaller. The broken invariant is made up
// here; the deliberate faults in mutants are the real ones.
func TestAFailureShrinksAndIsWritten(t *testing.T) {
	t.Parallel()
	h := NewWorker()
	h.wrong = func(w *world) {
		if w.tally[StoreAfter] > 0 && w.ops > 3 {
			w.audit.fail("E0", "a store failed after it was done")
		}
	}
	for seed := uint64(1); ; seed++ {
		s := NewScript(seed)
		res := h.Run(s, true)
		if res.Violation == nil {
			continue
		}
		small, again := Shrink(h, s, "E0", 300)
		if again.Violation == nil || again.Violation.Invariant != "E0" {
			t.Fatalf("the shrunk script ends with %v", again.Violation)
		}
		if len(small.Faults) > len(s.Faults)/2 || len(small.Ops) >= len(s.Ops) {
			t.Errorf("%d of %d faults and %d of %d operations are left", len(small.Faults), len(s.Faults), len(small.Ops), len(s.Ops))
		}
		var log, page bytes.Buffer
		if err := WriteLog(&log, again); err != nil {
			t.Fatal(err)
		}
		if err := WriteTimeline(&page, again); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{log.String(), page.String()} {
			if !strings.Contains(text, "a store failed after it was done") || !strings.Contains(text, string(StoreAfter)) {
				t.Errorf("it does not say what happened:\n%.400s", text)
			}
		}
		return
	}
}
