package alike_test

import (
	"cmp"
	"slices"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// ordered puts a snapshot into one order. Where a transition stands counts
// within its workspace, and only against others.
func ordered(s protocol.Snapshot) protocol.Snapshot {
	none := func(n int) bool { return n == 0 }
	slices.SortFunc(s.Workspaces, func(a, b protocol.Workspace) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(s.Tasks, func(a, b protocol.Task) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(s.Records, func(a, b protocol.Record) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortStableFunc(s.Entries, func(a, b protocol.Entry) int { return cmp.Compare(a.Account.Workspace, b.Account.Workspace) })
	slices.SortFunc(s.Balances, func(a, b protocol.Balance) int {
		return cmp.Or(cmp.Compare(a.Account.Workspace, b.Account.Workspace), cmp.Compare(a.Account.Unit, b.Account.Unit), cmp.Compare(a.Account.Period, b.Account.Period))
	})
	slices.SortStableFunc(s.Transitions, func(a, b protocol.Transition) int {
		return cmp.Or(cmp.Compare(a.Workspace, b.Workspace), cmp.Compare(a.Position, b.Position))
	})
	rank(s.Transitions)
	// Nothing is nil in one store and empty in another.
	if none(len(s.Tasks)) {
		s.Tasks = nil
	}
	if none(len(s.Records)) {
		s.Records = nil
	}
	if none(len(s.Entries)) {
		s.Entries = nil
	}
	if none(len(s.Balances)) {
		s.Balances = nil
	}
	if none(len(s.Transitions)) {
		s.Transitions = nil
	}
	if none(len(s.Identities)) {
		s.Identities = nil
	}
	return s
}

// rank replaces positions by places.
func rank(ts []protocol.Transition) {
	at := map[string]int64{}
	for i := range ts {
		at[ts[i].Workspace]++
		ts[i].Position = at[ts[i].Workspace]
	}
}
