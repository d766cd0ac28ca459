package postgres

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// Claim locks due rows, passing over those another transaction is at, lets
// decide judge them and writes what it says. It pages past rows that decide
// skips, and past rows whose write is stopped: the errors of those come back
// beside what was claimed.
//
// What is due the database's clock says too (see Clock): a node that is wrong
// about the time takes nothing.
func (s *Store) Claim(ctx context.Context, now time.Time, limit int, decide func(protocol.Task) (protocol.WriteSet, bool)) ([]protocol.Task, error) {
	var got []*protocol.Task
	var failed []error
	err := s.transact(ctx, func(ctx context.Context, t *tx) error {
		got, failed = nil, nil
		return s.claimOnce(ctx, t, now, limit, decide, &got, &failed)
	})
	if refused(err) && limit > 1 {
		// A row that the database alone refuses: one by one, those before and
		// behind it are not held up.
		return s.claimSingly(ctx, now, limit, decide)
	}
	if err != nil {
		return nil, judged(err)
	}
	out := make([]protocol.Task, len(got))
	for i, t := range got {
		s.rows.keep(t)
		out[i] = *t
	}
	return out, errors.Join(failed...)
}

// claimSingly claims rows in transactions of their own and skips those whose
// transaction fails.
func (s *Store) claimSingly(ctx context.Context, now time.Time, limit int, decide func(protocol.Task) (protocol.WriteSet, bool)) ([]protocol.Task, error) {
	var out []protocol.Task
	var failed []error
	skip := map[string]bool{}
	for len(out) < limit {
		var at string
		got, err := s.Claim(ctx, now, 1, func(t protocol.Task) (protocol.WriteSet, bool) {
			if skip[t.ID] {
				return protocol.WriteSet{}, false
			}
			w, ok := decide(t)
			if ok {
				at = t.ID
			}
			return w, ok
		})
		out = append(out, got...)
		if err != nil {
			failed = append(failed, err)
		}
		if at == "" || (err != nil && !refused(err)) {
			break
		}
		skip[at] = true
	}
	return out, errors.Join(failed...)
}

// due locks the next rows. The database judges by its own clock unless the
// store was opened with the caller's.
const due = `select t.due_at, t.ctid, ` + taskColumns + ` from tasks t
	where t.due_at <= $1 and t.due_at <= coalesce($2, ` + clockNow + `) and (t.due_at, t.id) > ($3, $4)
	order by t.due_at, t.id limit $5 for update skip locked`

func (s *Store) claimOnce(ctx context.Context, t *tx, now time.Time, limit int, decide func(protocol.Task) (protocol.WriteSet, bool), out *[]*protocol.Task, failed *[]error) error {
	st := &steps{c: &changes{books: newBooks()}, rows: map[string]*row{}, records: map[string]protocol.Record{}}
	lastAt, lastID := int64(math.MinInt64), ""
	var theirs *int64
	if s.callerClock {
		n := nanos(now)
		theirs = &n
	}
	for len(*out) < limit {
		seen, want := 0, limit-len(*out)
		var chosen []*protocol.WriteSet
		err := t.round(ctx, func(b *pgx.Batch) {
			b.Queue(due, nanos(now), theirs, lastAt, lastID, want).Query(func(rows pgx.Rows) error {
				return each(rows, func(r pgx.CollectableRow) error {
					seen++
					place := &pgtype.TID{}
					task, err := scanTask(r, &lastAt, place)
					lastID = task.ID
					if errors.Is(err, protocol.ErrInvariant) {
						*failed = append(*failed, err)
						return nil
					} else if err != nil {
						return err
					}
					if w, ok := decide(task); ok {
						st.rows[task.ID] = &row{was: &task, is: &task, place: place}
						chosen = append(chosen, &w)
					}
					return nil
				})
			})
		})
		if err != nil {
			return err
		}
		if err := s.lockWhat(ctx, t, st.c.books, chosen); err != nil {
			return err
		}
		*out = slices.Grow(*out, len(chosen))
		st.c.history = slices.Grow(st.c.history, len(chosen))
		for i := range chosen {
			task, err := st.apply(chosen[i])
			if err != nil {
				*failed = append(*failed, err)
				continue
			}
			*out = append(*out, task)
		}
		if seen < want {
			break
		}
	}
	if len(*out) == 0 {
		return nil
	}
	st.settle()
	return s.commit(ctx, t, st.c)
}

// lockWhat locks what sets that end tasks touch besides: repair's, not a
// runner's.
func (s *Store) lockWhat(ctx context.Context, t *tx, have *books, ws []*protocol.WriteSet) error {
	var sets [][]protocol.Entry
	touches := false
	for i := range ws {
		sets = append(sets, ws[i].Entries)
		touches = touches || ws[i].Free || len(ws[i].Entries) > 0
	}
	if !touches {
		return nil
	}
	more := newBooks(sets...)
	more.accounts = slices.DeleteFunc(more.accounts, func(a protocol.Account) bool { _, ok := have.balances[a]; return ok })
	err := t.round(ctx, func(b *pgx.Batch) {
		s.queueFreed(b, ws)
		s.queueBooks(b, more)
		s.queueOpen(b, have, ws)
	})
	for _, a := range more.accounts {
		have.accounts = append(have.accounts, a)
		have.set(more.balances[a])
	}
	maps.Copy(have.granted, more.granted)
	return err
}
