package memory

import "github.com/memwrite/memwrite-go/internal/protocol"

// ledger is the entries of a workspace and what they add up to.
type ledger struct {
	entries  log[protocol.Entry]
	balances map[protocol.Account]*protocol.Balance
	grants   map[string]bool  // ids, for the ones that are skipped
	open     map[string]int64 // reservations that have not ended, with their amount
}

// post adds all entries or none.
func (l *ledger) post(entries []protocol.Entry) error {
	// What the accounts are to hold, and where it is written when all is well.
	type change struct {
		balance protocol.Balance
		to      *protocol.Balance // nil: the account is new
	}
	var buf [2]change
	changes := buf[:0]
	find := func(a protocol.Account) *protocol.Balance {
		for i := range changes {
			if changes[i].balance.Account == a {
				return &changes[i].balance
			}
		}
		c := change{balance: protocol.Balance{Account: a}, to: l.balances[a]}
		if c.to != nil {
			c.balance = *c.to
		}
		changes = append(changes, c)
		return &changes[len(changes)-1].balance
	}
	var reserved string // by this very set: a verbatim write ends its own
	for i := range entries {
		e := &entries[i]
		switch e.Kind {
		case protocol.Grant:
			if l.grants[e.ID] {
				continue
			}
		case protocol.Reserve:
			if _, ok := l.open[e.ID]; ok {
				return broken("reservation %s exists", e.ID)
			}
			reserved = e.ID
		case protocol.Settle, protocol.Release:
			if amount, ok := l.open[e.Of]; (!ok && e.Of != reserved) || (ok && amount != e.Amount) {
				return broken("entry %s ends no reservation", e.ID)
			}
		}
		b := find(e.Account)
		after, err := b.Apply(*e)
		if err != nil {
			return err
		}
		*b = after
	}
	for i := range entries {
		e := &entries[i]
		switch e.Kind {
		case protocol.Grant:
			if l.grants[e.ID] {
				continue
			}
			l.grants[e.ID] = true
		case protocol.Reserve:
			l.open[e.ID] = e.Amount
		case protocol.Settle, protocol.Release:
			delete(l.open, e.Of)
		}
		l.entries.append(*e)
	}
	for _, c := range changes {
		if c.to == nil {
			c.to = new(protocol.Balance)
			l.balances[c.balance.Account] = c.to
		}
		*c.to = c.balance
	}
	return nil
}
