package protocol

import (
	"strconv"
	"time"
)

// Unit is what an account counts.
type Unit string

const (
	// Adds are MemorySync writes, one each, by the month.
	Adds Unit = "adds"
	// Credits are FishMem's: 2 for an inferred write, 1 for a verbatim one.
	Credits Unit = "credits"
)

// Unlimited is what an account without a bound is opened with.
const Unlimited int64 = 1 << 52

// Account is one balance of a workspace. Period is the UTC month ("2026-08") of
// adds and empty for credits.
type Account struct {
	Workspace string
	Unit      Unit
	Period    string
}

// EntryKind is what an entry does. Every entry moves its amount from one side
// of the account to another, so debits equal credits by construction:
//
//	grant    issued    → available
//	reserve  available → reserved
//	settle   reserved  → spent
//	release  reserved  → available
type EntryKind string

const (
	Grant   EntryKind = "grant"
	Reserve EntryKind = "reserve"
	Settle  EntryKind = "settle"
	Release EntryKind = "release"
)

// Entry is one row of the ledger. Rows are only ever added.
type Entry struct {
	ID      string // derived from what it is for, so that it exists once
	Account Account
	Kind    EntryKind
	Amount  int64 // > 0; only a grant may take back with a negative one
	TaskID  string
	Run     int
	Of      string // settle and release: the reservation they end
	At      time.Time
}

// Balance is what an account holds. No side is ever negative.
type Balance struct {
	Account   Account
	Granted   int64
	Available int64
	Reserved  int64
	Spent     int64
}

// Apply adds an entry, or says why it must not be.
func (b Balance) Apply(e Entry) (Balance, error) {
	switch e.Kind {
	case Grant:
		b.Granted += e.Amount
		b.Available += e.Amount
	case Reserve:
		if b.Available < e.Amount {
			return b, &InsufficientError{Account: e.Account, Needed: e.Amount}
		}
		b.Available -= e.Amount
		b.Reserved += e.Amount
	case Settle:
		b.Reserved -= e.Amount
		b.Spent += e.Amount
	case Release:
		b.Reserved -= e.Amount
		b.Available += e.Amount
	default:
		return b, broken("entry %s has no known kind", e.ID)
	}
	if e.Kind != Grant && e.Amount <= 0 {
		return b, broken("entry %s moves %d", e.ID, e.Amount)
	}
	if b.Available < 0 || b.Reserved < 0 || b.Spent < 0 {
		if e.Kind == Grant {
			return b, &InsufficientError{Account: e.Account, Needed: -e.Amount}
		}
		return b, broken("entry %s makes a balance negative", e.ID)
	}
	if b.Granted != b.Available+b.Reserved+b.Spent {
		return b, broken("account of %s does not balance", e.Account.Unit)
	}
	return b, nil
}

// price is what an operation reserves and where.
func price(k Kind) (Unit, int64) {
	switch k {
	case Infer:
		return Credits, 2
	case Verbatim:
		return Credits, 1
	default:
		return Adds, 1
	}
}

// AccountAt is the account of a unit at a time.
func AccountAt(workspace string, u Unit, now time.Time) Account {
	a := Account{Workspace: workspace, Unit: u}
	if u == Adds {
		a.Period = now.UTC().Format("2006-01")
	}
	return a
}

// Opening is the grant that opens an account. A store that has its id already
// skips it.
func Opening(w Workspace, a Account, now time.Time) Entry {
	amount := w.Credits
	if a.Unit == Adds {
		amount = w.AddsPerMonth
	}
	if amount < 0 {
		amount = Unlimited
	}
	return Entry{ID: "open:" + a.Workspace + ":" + string(a.Unit) + ":" + a.Period, Account: a, Kind: Grant, Amount: amount, At: now}
}

func entryID(k EntryKind, task string, run int) string {
	return string(k) + ":" + task + ":" + strconv.Itoa(run)
}

// ending settles or releases the reservation of the task's run. A task without
// one of its own ends nothing.
func ending(t *Task, k EntryKind, now time.Time) []Entry {
	if t.Amount == 0 {
		return nil
	}
	// The id does not say which of the two it is: a reservation ends once.
	return []Entry{{ID: "end:" + t.ID + ":" + strconv.Itoa(t.Run), Account: t.Account, Kind: k, Amount: t.Amount,
		TaskID: t.ID, Run: t.Run, Of: t.Reservation, At: now}}
}
