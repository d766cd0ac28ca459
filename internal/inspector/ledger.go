package inspector

import (
	"net/http"
	"slices"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// entriesShown bounds the entries of a page, the newest of them.
const entriesShown = 200

// book is the accounts of a workspace and what moved them.
type book struct {
	Accounts []account
	Open     int // reservations that have not ended
	Twice    int // reservations that ended more than once: always 0
	Entries  []entry
	Total    int
	Balanced bool
}

type account struct {
	protocol.Balance
	Unlimited bool
	Balanced  bool
}

type entry struct {
	protocol.Entry
	EndedBy string // of a reservation: settle, release or "" while it is open
}

func (i *Inspector) ledger(w http.ResponseWriter, r *http.Request) {
	all, err := i.Store().Entries(r.Context(), i.workspace(r))
	if err != nil {
		i.broken(w)
		return
	}
	b := book{Total: len(all), Balanced: true}
	ends := map[string]int{}
	by := map[string]protocol.EntryKind{}
	var accounts []protocol.Account
	seen := map[protocol.Account]bool{}
	for _, e := range all {
		if !seen[e.Account] {
			seen[e.Account] = true
			accounts = append(accounts, e.Account)
		}
		switch e.Kind {
		case protocol.Reserve:
			b.Open++
		case protocol.Settle, protocol.Release:
			b.Open--
			ends[e.Of]++
			by[e.Of] = e.Kind
			if ends[e.Of] == 2 {
				b.Twice++
			}
		}
	}
	for _, a := range accounts {
		bal, err := i.Store().Balance(r.Context(), a)
		if err != nil {
			i.broken(w)
			return
		}
		ok := bal.Granted == bal.Available+bal.Reserved+bal.Spent
		b.Balanced = b.Balanced && ok
		b.Accounts = append(b.Accounts, account{Balance: bal, Unlimited: bal.Granted >= protocol.Unlimited, Balanced: ok})
	}
	b.Balanced = b.Balanced && b.Twice == 0 && b.Open >= 0
	for _, e := range slices.Backward(all) {
		if len(b.Entries) == entriesShown {
			break
		}
		b.Entries = append(b.Entries, entry{e, string(by[e.ID])})
	}
	i.show(w, r, "ledger", "Ledger", b)
}
