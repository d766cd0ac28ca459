package postgres

import (
	"cmp"
	"slices"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// books are the accounts a transaction has locked, and what it adds to them.
// What an entry does to a balance is the protocol's to say.
type books struct {
	accounts []protocol.Account // in the order they are locked
	before   map[protocol.Account]protocol.Balance
	balances map[protocol.Account]protocol.Balance
	changed  map[protocol.Account]bool
	grants   []string         // that the entries may make
	granted  map[string]bool  // those that are there
	open     map[string]int64 // reservations that have not ended, with their amount
	entries  []protocol.Entry // new
}

// newBooks names the accounts that entries touch.
func newBooks(sets ...[]protocol.Entry) *books {
	b := &books{before: map[protocol.Account]protocol.Balance{}, balances: map[protocol.Account]protocol.Balance{}, changed: map[protocol.Account]bool{},
		granted: map[string]bool{}, open: map[string]int64{}}
	for _, es := range sets {
		for _, e := range es {
			if e.Kind == protocol.Grant {
				b.grants = append(b.grants, e.ID)
			}
			if _, ok := b.balances[e.Account]; !ok {
				b.balances[e.Account] = protocol.Balance{Account: e.Account}
				b.accounts = append(b.accounts, e.Account)
			}
		}
	}
	slices.SortFunc(b.accounts, func(x, y protocol.Account) int {
		return cmp.Or(cmp.Compare(x.Workspace, y.Workspace), cmp.Compare(x.Unit, y.Unit), cmp.Compare(x.Period, y.Period))
	})
	return b
}

// set is what an account holds before anything is added.
func (b *books) set(x protocol.Balance) { b.before[x.Account], b.balances[x.Account] = x, x }

// delta is what is added to an account.
func (b *books) delta(a protocol.Account) protocol.Balance {
	was, is := b.before[a], b.balances[a]
	return protocol.Balance{Account: a, Granted: is.Granted - was.Granted, Available: is.Available - was.Available,
		Reserved: is.Reserved - was.Reserved, Spent: is.Spent - was.Spent}
}

// post adds all entries or none.
func (b *books) post(entries []protocol.Entry) error {
	if len(entries) == 0 {
		return nil // most steps have none
	}
	next := map[protocol.Account]protocol.Balance{}
	open := map[string]int64{}
	var add []protocol.Entry
	for _, e := range entries {
		switch e.Kind {
		case protocol.Grant:
			if b.granted[e.ID] {
				continue
			}
		case protocol.Reserve:
			if _, ok := b.open[e.ID]; ok {
				return broken("reservation %s exists", e.ID)
			}
			open[e.ID] = e.Amount
		case protocol.Settle, protocol.Release:
			amount, ok := open[e.Of]
			if !ok {
				amount, ok = b.open[e.Of]
			}
			if !ok || amount != e.Amount {
				return broken("entry %s ends no reservation", e.ID)
			}
		}
		have, ok := next[e.Account]
		if !ok {
			have = b.balances[e.Account]
		}
		balance, err := have.Apply(e)
		if err != nil {
			return err
		}
		next[e.Account] = balance
		add = append(add, e)
	}
	for a, balance := range next {
		b.balances[a], b.changed[a] = balance, true
	}
	for _, e := range add {
		switch e.Kind {
		case protocol.Grant:
			b.granted[e.ID] = true
		case protocol.Reserve:
			b.open[e.ID] = e.Amount
		case protocol.Settle, protocol.Release:
			delete(b.open, e.Of)
		}
	}
	b.entries = append(b.entries, add...)
	return nil
}
