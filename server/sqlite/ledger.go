package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// Post adds grants of one workspace.
func (s *Store) Post(ctx context.Context, entries ...protocol.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	for _, e := range entries {
		if e.Account.Workspace != entries[0].Account.Workspace {
			return protocol.ErrNotFound
		}
	}
	return s.write(ctx, func(x *tx) error {
		if err := x.place(entries[0].Account.Workspace); err != nil {
			return err
		}
		return x.post(entries, "", 0)
	})
}

// post adds entries and moves their accounts. The row of the task that most of
// them belong to is known.
func (x *tx) post(entries []protocol.Entry, task string, seq int64) error {
	var buf [4]protocol.Balance
	moved := buf[:0]
	for i := range entries {
		e := &entries[i]
		if e.Kind == protocol.Grant {
			there, err := x.granted(e.ID)
			if err != nil {
				return err
			}
			if there {
				continue
			}
		}
		at := -1
		for j := range moved {
			if moved[j].Account == e.Account {
				at = j
			}
		}
		if at < 0 {
			b, err := x.balance(e.Account)
			if err != nil {
				return err
			}
			moved = append(moved, b)
			at = len(moved) - 1
		}
		b, err := moved[at].Apply(*e)
		if err != nil {
			return err
		}
		moved[at] = b
		if err := x.insertEntry(e, task, seq); err != nil {
			return err
		}
	}
	for _, b := range moved {
		x.move(b)
	}
	return nil
}

// granted says whether a grant is there already.
func (x *tx) granted(id string) (bool, error) {
	if x.grants[id] {
		return true, nil
	}
	var one int64
	err := x.query(`SELECT 1 FROM entry WHERE id = ? AND kind = 'grant'`, []any{id}, &one)
	if errors.Is(err, protocol.ErrNotFound) {
		return false, nil
	}
	if err == nil {
		x.grants[id] = true // it was there before this transaction, or is asked for twice in it
	}
	return err == nil, err
}

func (x *tx) balance(a protocol.Account) (protocol.Balance, error) {
	if b, ok := x.balances[a]; ok {
		return b, nil
	}
	b := protocol.Balance{Account: a}
	if err := x.place(a.Workspace); err != nil {
		return b, err
	}
	err := x.query(`SELECT granted, available, reserved, spent FROM balance WHERE workspace = ? AND unit = ? AND period = ?`,
		[]any{a.Workspace, string(a.Unit), a.Period}, &b.Granted, &b.Available, &b.Reserved, &b.Spent)
	if err != nil && !errors.Is(err, protocol.ErrNotFound) {
		return b, err
	}
	return b, nil
}

// insertEntry adds one row. An ending finds the reservation it names, open or
// not: that it ends once is the key's to say.
func (x *tx) insertEntry(e *protocol.Entry, known string, seq int64) error {
	if err := x.lastOf(&x.last.entry, `SELECT coalesce(max(posted), 0) FROM balance`); err != nil {
		return err
	}
	task, run, part := int64(0), x.last.entry+1, 0 // of a grant
	if e.Kind != protocol.Grant {
		if e.TaskID != known {
			if err := x.query(`SELECT seq FROM task WHERE id = ?`, []any{e.TaskID}, &seq); err != nil {
				return noReservation(e, err)
			}
		}
		task, run = seq, int64(e.Run)
		if e.Kind != protocol.Reserve {
			held, err := x.reservation(e.Account.Workspace, seq, e.Run)
			if err == nil && (held.id != e.Of || held.amount != e.Amount) {
				err = protocol.ErrNotFound
			}
			if err != nil {
				return noReservation(e, err)
			}
			part = 1
		}
	}
	x.last.entry++
	if e.Kind == protocol.Reserve {
		x.reserved[seq] = reservation{e.ID, e.Run, e.Amount}
		x.touched = append(x.touched, func() { delete(x.reserved, seq) })
		if run == 1 {
			return x.add(&x.pending.reserve, e.Account.Workspace, task, x.last.entry, e.ID, string(e.Account.Unit), e.Account.Period, e.Amount, stamp(e.At))
		}
	}
	return x.add(&x.pending.entry, e.Account.Workspace, task, run, part, x.last.entry, e.ID, string(e.Account.Unit), e.Account.Period, string(e.Kind), e.Amount, stamp(e.At))
}

// reservation finds what a run of a task has reserved: mostly a moment ago.
func (x *tx) reservation(workspace string, task int64, run int) (reservation, error) {
	if r, ok := x.reserved[task]; ok && r.run == run {
		delete(x.reserved, task) // it is ended now
		return r, nil
	}
	r := reservation{run: run}
	err := x.query(`SELECT id, amount FROM entry WHERE workspace = ? AND task = ? AND run = ? AND part = 0`, []any{workspace, task, run}, &r.id, &r.amount)
	return r, err
}

func noReservation(e *protocol.Entry, err error) error {
	if errors.Is(err, protocol.ErrNotFound) {
		return fmt.Errorf("%w: entry %s ends no reservation", protocol.ErrInvariant, e.ID)
	}
	return err
}
