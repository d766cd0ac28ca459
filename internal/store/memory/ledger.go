package memory

import "github.com/memwrite/memwrite-go/internal/protocol"

// ledger is the entries of a workspace and what they add up to.
type ledger struct {
	entries  log[protocol.Entry]
	balances map[protocol.Account]protocol.Balance
	grants   map[string]bool  // ids, for the ones that are skipped
	open     map[string]int64 // reservations that have not ended, with their amount
}

// post adds all entries or none.
func (l *ledger) post(entries []protocol.Entry) error {
	type change struct {
		account protocol.Account
		balance protocol.Balance
	}
	var buf [4]change
	changes := buf[:0]
	find := func(a protocol.Account) *change {
		for i := range changes {
			if changes[i].account == a {
				return &changes[i]
			}
		}
		b := l.balances[a]
		b.Account = a
		changes = append(changes, change{a, b})
		return &changes[len(changes)-1]
	}
	var reserved string // by this very set: a verbatim write ends its own
	for _, e := range entries {
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
		c := find(e.Account)
		b, err := c.balance.Apply(e)
		if err != nil {
			return err
		}
		c.balance = b
	}
	for _, e := range entries {
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
		l.entries.append(e)
	}
	for _, c := range changes {
		l.balances[c.account] = c.balance
	}
	return nil
}
