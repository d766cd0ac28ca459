package sim

import (
	"os"
	"strconv"
	"testing"
	"time"
)

func TestSchedules(t *testing.T) {
	t.Parallel()
	n := 300
	if v := os.Getenv("N"); v != "" {
		n, _ = strconv.Atoi(v)
	}
	began := time.Now()
	steps, ops, faults := 0, 0, 0
	for seed := range n {
		res := Run(NewScript(uint64(seed)), false)
		steps += res.Steps
		ops += res.Ops
		for _, c := range res.Faults {
			faults += c
		}
		if res.Violation != nil {
			t.Fatalf("seed %d: %v", seed, res.Violation)
		}
	}
	t.Logf("%d steps %d ops %d faults a schedule, %v each", steps/n, ops/n, faults/n, time.Since(began)/time.Duration(n))
}

func TestOne(t *testing.T) {
	seed := uint64(0)
	if v := os.Getenv("SEED"); v != "" {
		n, _ := strconv.Atoi(v)
		seed = uint64(n)
	} else {
		t.Skip()
	}
	res := Run(NewScript(seed), true)
	for _, l := range res.Log {
		t.Log(l)
	}
	t.Log(res.Violation)
}
