//go:build unix

package crash

import (
	"fmt"
	"regexp"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// Result is what became of the writes of a run.
type Result struct {
	Store         string
	Rounds        int
	Accepted      int // writes a client was told are accepted
	Lost          int // of those: without a record, or without a task that succeeded
	Duplicated    int // writes with more than one record, or more than one task that succeeded
	DoubleCharged int // writes that were paid for more than once
	Stuck         int // tasks that have not ended
	Fired         map[protocol.Point]int
}

// Clean says that the run shows what it has to.
func (r Result) Clean() bool {
	return r.Accepted > 0 && r.Lost == 0 && r.Duplicated == 0 && r.DoubleCharged == 0 && r.Stuck == 0
}

func (r Result) String() string {
	return fmt.Sprintf("store=%s rounds=%d accepted=%d lost=%d duplicated=%d double_charged=%d stuck=%d",
		r.Store, r.Rounds, r.Accepted, r.Lost, r.Duplicated, r.DoubleCharged, r.Stuck)
}

var marked = regexp.MustCompile(`c\d{7}`)

// judge counts from the store alone what became of what clients were told.
func judge(s protocol.Snapshot, accepted map[int64]string, r *Result) error {
	if err := protocol.Check(s); err != nil {
		return err
	}
	r.Accepted = len(accepted)
	records := map[string]int{}
	writer := map[string]string{} // task to the mark of its write
	for _, rec := range s.Records {
		m := marked.FindString(rec.Text)
		records[m]++
		writer[rec.TaskID] = m
	}
	settled := map[string]int64{}
	for _, e := range s.Entries {
		if e.Kind == protocol.Settle {
			settled[writer[e.TaskID]] += e.Amount
		}
	}
	succeeded := map[string]int{}
	prices := map[string]int64{}
	states := map[string]protocol.State{}
	for _, t := range s.Tasks {
		states[t.ID] = t.State
		if !t.State.Terminal() {
			r.Stuck++
		}
		if t.State == protocol.Succeeded {
			succeeded[writer[t.ID]]++
			prices[writer[t.ID]] = t.Amount
		}
	}
	for n, event := range accepted {
		m := mark(n)
		if records[m] == 0 || succeeded[m] == 0 || (event != "" && states[event] != protocol.Succeeded) {
			r.Lost++
		}
	}
	for m, n := range records {
		if n > 1 || succeeded[m] > 1 {
			r.Duplicated++
		}
		if settled[m] > prices[m] {
			r.DoubleCharged++
		}
	}
	return nil
}
