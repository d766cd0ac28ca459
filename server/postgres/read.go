package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/internal/doc"
)

func each(rows pgx.Rows, f func(pgx.CollectableRow) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func scanHash(row pgx.CollectableRow) (h protocol.Hash, err error) {
	var b []byte
	err = row.Scan(&b)
	copy(h[:], b)
	return h, err
}

// list reads rows; a failure that may pass is tried again, for nothing is
// written.
func list[T any](ctx context.Context, s *Store, scan func(pgx.CollectableRow) (T, error), sql string, args ...any) ([]T, error) {
	var out []T
	err := s.again(ctx, func() error {
		out = nil
		rows, err := s.pool.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		return each(rows, func(r pgx.CollectableRow) error {
			x, err := scan(r)
			out = append(out, x)
			return err
		})
	})
	if err != nil {
		return nil, judged(err)
	}
	return out, nil
}

// one reads a row: ErrNotFound when there is none.
func one[T any](ctx context.Context, s *Store, scan func(pgx.CollectableRow) (T, error), sql string, args ...any) (T, error) {
	out, err := list(ctx, s, scan, sql, args...)
	if err == nil && len(out) == 0 {
		err = protocol.ErrNotFound
	}
	if err != nil {
		var none T
		return none, err
	}
	return out[0], nil
}

func scanInto[T any](row pgx.CollectableRow) (T, error) {
	var x T
	err := row.Scan(&x)
	return x, err
}

func (s *Store) NextDue(ctx context.Context) (time.Time, bool, error) {
	at, err := one(ctx, s, scanInto[int64], `select due_at from tasks where due_at is not null order by due_at, id limit 1`)
	if errors.Is(err, protocol.ErrNotFound) {
		return time.Time{}, false, nil
	}
	return moment(at), err == nil, err
}

// Allot draws from a sequence: numbers of a node that crashes are lost.
func (s *Store) Allot(ctx context.Context, n int) (int64, error) {
	if n <= 1 {
		return one(ctx, s, scanInto[int64], `select nextval('record_numbers')`)
	}
	// Drawing one by one could interleave with another node: the sequence is
	// moved in one go, by whoever holds the lock of its name.
	var first int64
	err := s.transact(ctx, func(ctx context.Context, t *tx) error {
		return t.commit(ctx, func(b *pgx.Batch) error {
			b.Queue(`select pg_advisory_xact_lock(hashtextextended('record_numbers.' || current_schema(), 0))`)
			b.Queue(`select nextval('record_numbers')`).QueryRow(func(r pgx.Row) error { return r.Scan(&first) })
			b.Queue(`select setval('record_numbers', currval('record_numbers') + $1 - 1)`, n)
			return nil
		})
	})
	return first, judged(err)
}

func (s *Store) Task(ctx context.Context, id string) (protocol.Task, error) {
	return one(ctx, s, oneTask, `select `+taskColumns+` from tasks t where t.id = $1`, id)
}

func (s *Store) TaskByIdentity(ctx context.Context, h protocol.Hash) (protocol.Task, error) {
	return one(ctx, s, oneTask, `select `+taskColumns+` from identities i join tasks t on t.id = i.task_id where i.hash = $1`, h[:])
}

func (s *Store) Transitions(ctx context.Context, workspace string, after int64, limit int) ([]protocol.Transition, error) {
	return list(ctx, s, scanTransition, `select `+transitionColumns+` from transitions where workspace = $1 and position > $2 order by position limit $3`,
		workspace, after, bound(limit))
}

const transitionColumns = `position, workspace, task_id, number, run, attempt, from_state, to_state, class, code, at`

func scanTransition(row pgx.CollectableRow) (protocol.Transition, error) {
	var t protocol.Transition
	var at int64
	err := row.Scan(&t.Position, &t.Workspace, &t.TaskID, &t.Number, &t.Run, &t.Attempt, &t.From, &t.To, &t.Class, &t.Code, &at)
	t.ID, t.At = protocol.TransitionID(t.TaskID, t.Number), moment(at)
	return t, err
}

// bound is a limit in SQL's words: null is none.
func bound(limit int) *int {
	if limit <= 0 {
		return nil
	}
	return &limit
}

func (s *Store) PutWorkspace(ctx context.Context, w protocol.Workspace) error {
	body, err := written(doc.OfWorkspace(w))
	if err != nil {
		return err
	}
	return judged(s.transact(ctx, func(ctx context.Context, t *tx) error {
		return t.commit(ctx, func(b *pgx.Batch) error {
			b.Queue(`insert into workspaces (id, doc) values ($1, $2) on conflict (id) do update set doc = excluded.doc`, w.ID, body)
			b.Queue(`insert into histories (workspace, position) values ($1, 0) on conflict do nothing`, w.ID)
			return nil
		})
	}))
}

func (s *Store) Workspace(ctx context.Context, id string) (protocol.Workspace, error) {
	return one(ctx, s, scanWorkspace, `select doc from workspaces where id = $1`, id)
}

func scanWorkspace(row pgx.CollectableRow) (w protocol.Workspace, err error) {
	body, err := scanInto[[]byte](row)
	if err != nil {
		return w, err
	}
	if w, err = doc.Workspace(body); err != nil {
		err = broken("the row of a workspace cannot be read")
	}
	return w, err
}

// known is ErrNotFound for a workspace that was never made. None is ever taken
// away, so it is asked once.
func (s *Store) known(ctx context.Context, id string) error {
	if s.spaces.has(id) {
		return nil
	}
	_, err := s.Workspace(ctx, id)
	if err == nil {
		s.spaces.add(id)
	}
	return err
}

func (s *Store) Balance(ctx context.Context, a protocol.Account) (protocol.Balance, error) {
	b, err := one(ctx, s, scanBalance, `select `+balanceColumns+` from balances where workspace = $1 and unit = $2 and period = $3 and opened`, a.Workspace, string(a.Unit), a.Period)
	if errors.Is(err, protocol.ErrNotFound) {
		return protocol.Balance{}, nil
	}
	return b, err
}

const balanceColumns = `workspace, unit, period, granted, available, reserved, spent`

func scanBalance(row pgx.CollectableRow) (b protocol.Balance, err error) {
	err = row.Scan(&b.Account.Workspace, &b.Account.Unit, &b.Account.Period, &b.Granted, &b.Available, &b.Reserved, &b.Spent)
	return b, err
}

func (s *Store) Entries(ctx context.Context, workspace string) ([]protocol.Entry, error) {
	return list(ctx, s, scanEntry, `select `+entryColumns+` from entries where workspace = $1 order by seq`, workspace)
}

const entryColumns = `id, workspace, unit, period, kind, amount, task_id, run, of_id, at`

func scanEntry(row pgx.CollectableRow) (e protocol.Entry, err error) {
	var at int64
	err = row.Scan(&e.ID, &e.Account.Workspace, &e.Account.Unit, &e.Account.Period, &e.Kind, &e.Amount, &e.TaskID, &e.Run, &e.Of, &at)
	e.At = moment(at)
	return e, err
}
