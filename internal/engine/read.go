package engine

import (
	"context"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// Task reads a task of a workspace: ErrNotFound for one of another.
func (e *Engine) Task(ctx context.Context, workspace, id string) (protocol.Task, error) {
	t, err := e.store.Task(ctx, id)
	if err == nil && t.Workspace != workspace {
		return protocol.Task{}, protocol.ErrNotFound
	}
	return t, err
}

// Event is the view of an inferred write; other tasks have none.
func (e *Engine) Event(ctx context.Context, workspace, id string) (protocol.Event, error) {
	t, err := e.Task(ctx, workspace, id)
	if err == nil && t.Kind != protocol.Infer {
		return protocol.Event{}, protocol.ErrNotFound
	}
	return protocol.EventOf(t), err
}

// Events lists inferred writes, newest first. status may be empty; after is
// the place of the last one seen, or nil.
func (e *Engine) Events(ctx context.Context, workspace string, status protocol.State, after *protocol.Place, limit int) ([]protocol.Event, error) {
	ts, err := e.store.Tasks(ctx, protocol.TaskQuery{Workspace: workspace, Kinds: []protocol.Kind{protocol.Infer}, State: status, After: after, Limit: limit})
	out := make([]protocol.Event, len(ts))
	for i, t := range ts {
		out[i] = protocol.EventOf(t)
	}
	return out, err
}

// Operations lists FishMem's operations of both kinds, newest first.
func (e *Engine) Operations(ctx context.Context, workspace string, limit int) ([]protocol.Task, error) {
	return e.store.Tasks(ctx, protocol.TaskQuery{Workspace: workspace, Kinds: []protocol.Kind{protocol.Infer, protocol.Verbatim}, Limit: limit})
}

// Operation reads one of FishMem's operations.
func (e *Engine) Operation(ctx context.Context, workspace, id string) (protocol.Task, error) {
	t, err := e.Task(ctx, workspace, id)
	if err == nil && t.Kind.Wire() != protocol.FishMem {
		return protocol.Task{}, protocol.ErrNotFound
	}
	return t, err
}

// TaskByIdentity finds the task that a key, reference or turn made; see
// protocol.CommandKey, ClientRef and ReplayKey. ErrNotFound when there is none
// in the workspace or its failure freed the name.
func (e *Engine) TaskByIdentity(ctx context.Context, workspace string, h protocol.Hash) (protocol.Task, error) {
	t, err := e.store.TaskByIdentity(ctx, h)
	if err == nil && t.Workspace != workspace {
		return protocol.Task{}, protocol.ErrNotFound
	}
	return t, err
}

// Tasks lists every task of a workspace, newest first.
func (e *Engine) Tasks(ctx context.Context, workspace string) ([]protocol.Task, error) {
	return e.store.Tasks(ctx, protocol.TaskQuery{Workspace: workspace})
}

// Transitions lists what happened after a position, in order.
func (e *Engine) Transitions(ctx context.Context, workspace string, after int64, limit int) ([]protocol.Transition, error) {
	return e.store.Transitions(ctx, workspace, after, limit)
}

// Record reads a live record by its FishMem id.
func (e *Engine) Record(ctx context.Context, workspace string, w protocol.Wire, id string) (protocol.Record, error) {
	r, err := e.store.Record(ctx, workspace, id)
	return e.visible(r, w, err)
}

// RecordByNumber reads a live record by its MemorySync id.
func (e *Engine) RecordByNumber(ctx context.Context, workspace string, n int64) (protocol.Record, error) {
	r, err := e.store.RecordByNumber(ctx, workspace, n)
	return e.visible(r, protocol.MemorySync, err)
}

func (e *Engine) visible(r protocol.Record, w protocol.Wire, err error) (protocol.Record, error) {
	if err == nil && (r.Wire != w || !r.Live(e.sched.Now())) {
		return protocol.Record{}, protocol.ErrNotFound
	}
	return r, err
}

// Records lists live records of a scope, newest first.
func (e *Engine) Records(ctx context.Context, q protocol.RecordQuery) ([]protocol.Record, error) {
	q.Now = e.sched.Now()
	return e.store.Records(ctx, q)
}

// Forget makes a record a tombstone: its id stays taken, its text is gone. A
// second call is ErrNotFound. What it was charged stays charged, and its reference stays ingested.
func (e *Engine) Forget(ctx context.Context, r protocol.Record) error {
	now := e.sched.Now()
	cur, err := e.store.Record(ctx, r.Workspace, r.ID)
	if err != nil {
		return err
	}
	if !cur.Live(now) {
		return protocol.ErrNotFound
	}
	gone := cur.Forget(now)
	if err := e.store.PutRecord(ctx, gone); err != nil {
		return err
	}
	e.withdraw(ctx, gone)
	return nil
}

// Usage is the balances of a workspace now: this month's adds, and credits. An
// account that was never used shows what it would be opened with.
func (e *Engine) Usage(ctx context.Context, workspace string) ([]protocol.Balance, error) {
	w, err := e.store.Workspace(ctx, workspace)
	if err != nil {
		return nil, err
	}
	var out []protocol.Balance
	for _, u := range []protocol.Unit{protocol.Adds, protocol.Credits} {
		a := protocol.AccountAt(workspace, u, e.sched.Now())
		b, err := e.store.Balance(ctx, a)
		if err != nil {
			return nil, err
		}
		if b == (protocol.Balance{}) {
			b, _ = protocol.Balance{Account: a}.Apply(protocol.Opening(w, a, time.Time{}))
		}
		out = append(out, b)
	}
	return out, nil
}

// Grant changes what an account has by amount, which may be negative:
// ErrInsufficient when more is taken than is there. It opens the account.
func (e *Engine) Grant(ctx context.Context, workspace string, u protocol.Unit, amount int64) error {
	w, err := e.store.Workspace(ctx, workspace)
	if err != nil {
		return err
	}
	now := e.sched.Now()
	a := protocol.AccountAt(workspace, u, now)
	return e.store.Post(ctx, protocol.Opening(w, a, now),
		protocol.Entry{ID: e.random("grant:", 16), Account: a, Kind: protocol.Grant, Amount: amount, At: now})
}

// Ledger is every entry of a workspace in order.
func (e *Engine) Ledger(ctx context.Context, workspace string) ([]protocol.Entry, error) {
	return e.store.Entries(ctx, workspace)
}

// PutWorkspace makes or changes a workspace.
func (e *Engine) PutWorkspace(ctx context.Context, w protocol.Workspace) error {
	return e.store.PutWorkspace(ctx, w)
}

// Check holds everything stored against the protocol's invariants.
func (e *Engine) Check(ctx context.Context) error {
	s, err := e.store.Snapshot(ctx)
	if err != nil {
		return err
	}
	return protocol.Check(s)
}
