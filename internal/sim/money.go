package sim

import "github.com/memwrite/memwrite-go/internal/protocol"

// money: a run has one reservation, which ends once, settled if and only if the
// task SUCCEEDED.
func (a *audit) money(old *protocol.Task, ws *protocol.WriteSet) {
	t := &ws.Task
	ends, reserves := 0, 0
	for _, e := range ws.Entries {
		switch e.Kind {
		case protocol.Settle, protocol.Release:
			ends++
			if a.ended[e.Of] || a.open[e.Of].ID == "" {
				a.fail("I7", "%s of task %s ends no open reservation", e.Kind, t.ID)
			}
			if want := map[bool]protocol.EntryKind{true: protocol.Settle, false: protocol.Release}[t.State == protocol.Succeeded]; e.Kind != want || !t.State.Terminal() {
				a.fail("I7", "task %s is %s and its reservation would be ended by %s", t.ID, t.State, e.Kind)
			}
		case protocol.Reserve:
			reserves++
		}
	}
	if t.State.Terminal() && !old.State.Terminal() && ends != 1 {
		a.fail("I7", "task %s ends %s and its reservation is ended %d times", t.ID, t.State, ends)
	}
	if !t.State.Terminal() && ends != 0 {
		a.fail("I7", "task %s is %s and its reservation would be ended", t.ID, t.State)
	}
	if again := old.State == protocol.Failed && t.State == protocol.Pending; again != (reserves == 1) {
		a.fail("I7", "task %s goes from %s to %s with %d reservations", t.ID, old.State, t.State, reserves)
	}
}

// post adds entries to the books.
func (a *audit) post(entries []protocol.Entry, s *shadow) {
	for _, e := range entries {
		if e.Kind == protocol.Grant {
			if a.grants[e.ID] {
				continue
			}
			a.grants[e.ID] = true
		}
		b := a.accounts[e.Account]
		b.Account = e.Account
		switch e.Kind {
		case protocol.Grant:
			b.Granted += e.Amount
			b.Available += e.Amount
		case protocol.Reserve:
			if _, ok := a.open[e.ID]; ok || a.ended[e.ID] {
				a.fail("I7", "reservation %s is made twice", e.ID)
			}
			a.open[e.ID] = e
			b.Available -= e.Amount
			b.Reserved += e.Amount
		case protocol.Settle, protocol.Release:
			r := a.open[e.Of]
			if r.ID == "" || r.Amount != e.Amount || r.Account != e.Account {
				a.fail("I7", "%s %s ends no open reservation", e.Kind, e.ID)
			}
			delete(a.open, e.Of)
			a.ended[e.Of] = true
			b.Reserved -= e.Amount
			if e.Kind == protocol.Settle {
				b.Spent += e.Amount
				if s != nil {
					s.charged += e.Amount
				}
			} else {
				b.Available += e.Amount
			}
		}
		if b.Available < 0 || b.Reserved < 0 || b.Spent < 0 || b.Granted != b.Available+b.Reserved+b.Spent {
			a.fail("I7", "the account of %s does not balance: %+v", e.Account.Unit, b)
		}
		a.accounts[e.Account] = b
	}
}
