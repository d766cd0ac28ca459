package conformance_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/memwrite/memwrite-go/conformance"
)

func TestTheSecondServerKeepsEveryPromise(t *testing.T) {
	t.Parallel()
	report := conformance.Test(t, newSecond(t, "").config())
	if n := report.Count(conformance.NotRun); n > 0 {
		t.Errorf("%d checks did not run", n)
	}
}

// Every check can fail, and fails alone: the second server breaks one promise
// at a time, and the check of that promise is the one that fails.
func TestEveryBrokenPromiseIsCaughtByItsCheckAlone(t *testing.T) {
	t.Parallel()
	plan, err := conformance.Run(t.Context(), newSecond(t, "").config())
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(plan.Results))
	for i, r := range plan.Results {
		if !testing.Short() || i%8 == 0 {
			names = append(names, r.Name)
		}
	}
	failures := make([][]conformance.Result, len(names))
	var all sync.WaitGroup
	seats := make(chan struct{}, 12) // they mostly wait
	for i, name := range names {
		cfg := newSecond(t, name).config()
		all.Go(func() {
			seats <- struct{}{}
			defer func() { <-seats }()
			report, err := conformance.Run(t.Context(), cfg)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			failures[i] = report.Failures()
		})
	}
	all.Wait()
	caught := 0
	for i, name := range names {
		if len(failures[i]) == 1 && failures[i][0].Name == name {
			caught++
			continue
		}
		t.Errorf("with %s broken %d checks failed", name, len(failures[i]))
		for _, f := range failures[i] {
			t.Errorf("    %s: %s", f.Name, f.Why)
		}
	}
	fmt.Printf("broken=%d caught=%d\n", len(names), caught)
}
