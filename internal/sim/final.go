package sim

import (
	"strings"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// final holds the whole store against the invariants, and against what the
// callers wanted and were told, once everything rests.
func (w *world) final() {
	s, err := w.store.Snapshot(w.ctx)
	if err != nil {
		w.audit.fail("I0", "no snapshot: %v", err)
		return
	}
	if err := protocol.Check(s); err != nil {
		w.audit.fail("I0", "at rest: %v", err)
	}
	w.finalBooks(s)
	w.finalHistory(s)
	w.finalWishes(s)
}

// finalBooks: what is stored is what was seen to be written.
func (w *world) finalBooks(s protocol.Snapshot) {
	a := w.audit
	if len(s.Tasks) != len(a.tasks) {
		a.fail("I1", "%d tasks are stored and %d were seen", len(s.Tasks), len(a.tasks))
	}
	for _, b := range s.Balances {
		if a.accounts[b.Account] != b {
			a.fail("I7", "the balance of %s is %+v, its entries say %+v", b.Account.Unit, b, a.accounts[b.Account])
		}
	}
	if len(a.open) > 0 {
		a.fail("I7", "%d reservations are open although everything has ended", len(a.open))
	}
	records := map[string]int{}
	for i := range s.Records {
		records[s.Records[i].TaskID]++
	}
	for _, t := range s.Tasks {
		sh := a.tasks[t.ID]
		if sh == nil || sh.row.Version != t.Version {
			a.fail("I5", "task %s was changed by a write nobody saw", t.ID)
			continue
		}
		want := 0
		if t.State == protocol.Succeeded && t.Plan != nil {
			want = len(t.Plan.Mutations)
		}
		if records[t.ID] != want {
			a.fail("I4", "task %s is %s and has %d records, planned are %d", t.ID, t.State, records[t.ID], want)
		}
	}
}

// finalHistory: one terminal transition a run, and the reader saw it all.
func (w *world) finalHistory(s protocol.Snapshot) {
	type run struct {
		task string
		n    int
	}
	ends := map[run]int{}
	byWorkspace := map[string][]string{}
	for _, tr := range s.Transitions {
		byWorkspace[tr.Workspace] = append(byWorkspace[tr.Workspace], tr.ID)
		if tr.To.Terminal() {
			if ends[run{tr.TaskID, tr.Run}]++; ends[run{tr.TaskID, tr.Run}] > 1 {
				w.audit.fail("I3", "run %d of task %s ends twice", tr.Run, tr.TaskID)
			}
		}
	}
	for _, r := range w.readers {
		all := byWorkspace[r.workspace]
		for i := range max(len(all), len(r.seen)) {
			if i >= len(all) || i >= len(r.seen) || all[i] != r.seen[i] {
				w.audit.fail("I11", "the reader of %s saw %d transitions of %d, the first other one at %d", r.workspace, len(r.seen), len(all), i)
				break
			}
		}
	}
}

// finalWishes: what somebody wanted once is there once and was charged once.
func (w *world) finalWishes(s protocol.Snapshot) {
	a := w.audit
	texts := map[string]int{} // facts that are stored, live or forgotten, by the task's command
	for _, x := range w.wishes {
		id := x.identity()
		live, charged := 0, int64(0)
		for _, t := range a.order {
			sh := a.tasks[t]
			if sh.row.Identity.Hash != id.Hash {
				continue
			}
			charged += sh.charged
			if sh.row.State == protocol.Succeeded {
				live++
			}
		}
		switch {
		case live == 0 && !x.moot:
			a.fail("E1", "%s was told that it is stored, and nothing is", x)
		case live > 1 && id.Window == 0:
			a.fail("E2", "%s is stored %d times", x, live)
		}
		if price := x.price(); charged != price*int64(live) {
			a.fail("E3", "%s is stored %d times and was charged %d", x, live, charged)
		}
	}
	for i := range s.Records {
		r := &s.Records[i]
		if r.Forgotten || !strings.HasPrefix(r.Text, "thing ") {
			continue
		}
		if texts[r.TaskID+r.Text]++; texts[r.TaskID+r.Text] > 1 {
			a.fail("E2", "task %s stored %q twice", r.TaskID, r.Text)
		}
	}
}

// price is what the wish's identity costs when it is stored: that of the
// command which has it.
func (x *wish) price() int64 {
	a := x.world.audit
	if s := a.tasks[a.identities[x.identity().Hash]]; s != nil {
		switch s.row.Kind {
		case protocol.Infer:
			return 2
		case protocol.Delete:
			return 0
		}
	}
	return 1
}
