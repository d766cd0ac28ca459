package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/internal/doc"
)

// statement is a reader's, prepared once.
func (s *Store) statement(ctx context.Context, q string) (*sql.Stmt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.prepared[q]; st != nil {
		return st, nil
	}
	st, err := s.readers.PrepareContext(ctx, q)
	if err != nil {
		return nil, failed(err)
	}
	s.prepared[q] = st
	return st, nil
}

// one reads a row; protocol.ErrNotFound when there is none.
func (s *Store) one(ctx context.Context, q string, args []any, dest ...any) error {
	return s.quick.do(ctx, func(r *tx) error { return r.query(q, args, dest...) })
}

// scanner is a row of a list.
type scanner interface{ Scan(dest ...any) error }

// list reads rows into a slice.
func list[T any](ctx context.Context, s *Store, q string, args []any, each func(scanner) (T, error)) ([]T, error) {
	st, err := s.statement(ctx, q)
	if err != nil {
		return nil, err
	}
	rows, err := st.QueryContext(ctx, args...)
	return collect(rows, err, each)
}

func collect[T any](rows *sql.Rows, err error, each func(scanner) (T, error)) ([]T, error) {
	if err != nil {
		return nil, failed(err)
	}
	defer rows.Close()
	var out []T
	for rows.Next() {
		v, err := each(rows)
		if err != nil {
			return nil, failed(err)
		}
		out = append(out, v)
	}
	return out, failed(rows.Err())
}

func (s *Store) NextDue(ctx context.Context) (time.Time, bool, error) {
	var at int64
	err := s.one(ctx, `SELECT due FROM task WHERE due IS NOT NULL ORDER BY due LIMIT 1`, nil, &at)
	if errors.Is(err, protocol.ErrNotFound) {
		return time.Time{}, false, nil
	}
	return time.Unix(0, at).UTC(), err == nil, err
}

func (s *Store) Task(ctx context.Context, id string) (protocol.Task, error) {
	return s.task(ctx, `SELECT doc, version FROM task WHERE id = ?`, id)
}

func (s *Store) TaskByIdentity(ctx context.Context, h protocol.Hash) (protocol.Task, error) {
	return s.task(ctx, `SELECT t.doc, t.version FROM identity i JOIN task t ON t.seq = i.task WHERE i.hash = ?`, h[:])
}

func (s *Store) task(ctx context.Context, q string, arg any) (protocol.Task, error) {
	var raw []byte
	var version int64
	if err := s.one(ctx, q, []any{arg}, &raw, &version); err != nil {
		return protocol.Task{}, err
	}
	return doc.Task(raw, version)
}

func taskOf(r scanner) (protocol.Task, error) {
	var raw []byte
	var version int64
	if err := r.Scan(&raw, &version); err != nil {
		return protocol.Task{}, err
	}
	return doc.Task(raw, version)
}

// Tasks merges the lists of each kind and state that is asked for, which the
// index holds in order, so that what is rare among many others costs as little.
func (s *Store) Tasks(ctx context.Context, q protocol.TaskQuery) ([]protocol.Task, error) {
	kinds, states := q.Kinds, []protocol.State{q.State}
	if len(kinds) == 0 {
		kinds = []protocol.Kind{protocol.MemorySyncAdd, protocol.Turn, protocol.Infer, protocol.Verbatim, protocol.Delete, protocol.DeleteAll}
	}
	if q.State == "" {
		states = []protocol.State{protocol.Pending, protocol.Running, protocol.Retrying, protocol.Succeeded, protocol.Failed}
	}
	var lists []string
	var args []any
	for _, k := range kinds {
		for _, st := range states {
			where, own := after([]string{"workspace = ?", "kind = ?", "state = ?"}, []any{q.Workspace, string(k), string(st)}, q.After)
			lists = append(lists, "SELECT * FROM (SELECT seq, created, id FROM task WHERE "+strings.Join(where, " AND ")+" ORDER BY created DESC, id DESC LIMIT ?)")
			args = append(append(args, own...), bound(q.Limit))
		}
	}
	return list(ctx, s, `SELECT t.doc, t.version FROM (SELECT seq, created, id FROM (`+strings.Join(lists, " UNION ALL ")+`)
		ORDER BY created DESC, id DESC LIMIT ?) l JOIN task t ON t.seq = l.seq ORDER BY l.created DESC, l.id DESC`, append(args, bound(q.Limit)), taskOf)
}

func after(where []string, args []any, p *protocol.Place) ([]string, []any) {
	if p == nil {
		return where, args
	}
	return append(where, "(created, id) < (?, ?)"), append(args, nanos(p.Created), p.ID)
}

// bound is a limit as SQL takes it: below zero is none.
func bound(limit int) int {
	if limit <= 0 {
		return -1
	}
	return limit
}

const transitionColumns = `SELECT x.position, x.workspace, t.id, x.number, x.run, x.attempt, x.was, x.state, x.class, x.code, x.at
	FROM transition x JOIN task t ON t.seq = x.task `

func transitionOf(r scanner) (tr protocol.Transition, err error) {
	var from, to, class, at string
	if err := r.Scan(&tr.Position, &tr.Workspace, &tr.TaskID, &tr.Number, &tr.Run, &tr.Attempt, &from, &to, &class, &tr.Code, &at); err != nil {
		return tr, err
	}
	tr.ID = protocol.TransitionID(tr.TaskID, tr.Number)
	tr.From, tr.To, tr.Class = protocol.State(from), protocol.State(to), protocol.Class(class)
	tr.At, err = unstamp(at)
	return tr, err
}

// Transitions are in the order of their commits: one writer gives positions,
// and a reader sees a transaction whole or not at all.
func (s *Store) Transitions(ctx context.Context, workspace string, after int64, limit int) ([]protocol.Transition, error) {
	return list(ctx, s, transitionColumns+`WHERE x.workspace = ? AND x.position > ? ORDER BY x.position LIMIT ?`,
		[]any{workspace, after, bound(limit)}, transitionOf)
}

func (s *Store) Workspace(ctx context.Context, id string) (protocol.Workspace, error) {
	w, epoch, ok := s.workspaces.get(id)
	if ok {
		return w, nil
	}
	var raw []byte
	err := s.one(ctx, `SELECT doc FROM workspace WHERE id = ?`, []any{id}, &raw)
	if err == nil {
		w, err = doc.Workspace(raw)
	}
	if err != nil {
		return protocol.Workspace{}, err
	}
	s.workspaces.put(w, epoch)
	return w, nil
}

func (s *Store) Balance(ctx context.Context, a protocol.Account) (protocol.Balance, error) {
	b := protocol.Balance{Account: a}
	err := s.one(ctx, `SELECT granted, available, reserved, spent FROM balance WHERE workspace = ? AND unit = ? AND period = ?`,
		[]any{a.Workspace, string(a.Unit), a.Period}, &b.Granted, &b.Available, &b.Reserved, &b.Spent)
	if errors.Is(err, protocol.ErrNotFound) {
		return protocol.Balance{}, nil
	}
	return b, err
}

const entryColumns = `SELECT e.id, e.workspace, e.unit, e.period, e.kind, e.amount, coalesce(t.id, ''), CASE WHEN e.task = 0 THEN 0 ELSE e.run END, coalesce(o.id, ''), e.at
	FROM entry e LEFT JOIN task t ON t.seq = e.task
	LEFT JOIN entry o ON e.part = 1 AND o.workspace = e.workspace AND o.task = e.task AND o.run = e.run AND o.part = 0 `

func entryOf(r scanner) (e protocol.Entry, err error) {
	var unit, kind, at string
	if err := r.Scan(&e.ID, &e.Account.Workspace, &unit, &e.Account.Period, &kind, &e.Amount, &e.TaskID, &e.Run, &e.Of, &at); err != nil {
		return e, err
	}
	e.Account.Unit, e.Kind = protocol.Unit(unit), protocol.EntryKind(kind)
	e.At, err = unstamp(at)
	return e, err
}

func (s *Store) Entries(ctx context.Context, workspace string) ([]protocol.Entry, error) {
	return list(ctx, s, entryColumns+`WHERE e.workspace = ? ORDER BY e.seq`, []any{workspace}, entryOf)
}
