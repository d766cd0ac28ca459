package sim

import (
	"context"
	"errors"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

var (
	errStore = errors.New("sim: the store failed")
	errDown  = errors.New("sim: the node is down")
)

// nodeStore is the one store as a node reaches it: every operation takes time
// and may fail before or after it is done, and a node that died reaches it no
// more. The audit sees each write at the moment it is made.
type nodeStore struct {
	n *node
	protocol.Store
}

// enter is the way to the store.
func (s *nodeStore) enter(ctx context.Context, write bool) (after *Fault, err error) {
	w := s.n.world
	if s.n.dead {
		return nil, errDown
	}
	w.spend(w.script.World.StoreTime)
	f := w.strike(atStore)
	if f == nil && write {
		f = w.strike(atWrite)
	}
	if f != nil {
		switch f.Kind {
		case StoreAfter, NodeCrashAfter:
			after = f
		case StoreSlow:
			w.fired(f, "")
			w.sleep(f.Span)
		case StoreBefore:
			w.fired(f, "")
			return nil, errStore
		case NodeStop:
			w.fired(f, "")
			s.n.stop(f.Span)
		case NodeCrash:
			w.fired(f, "")
			s.n.crash(f.Span)
		}
	}
	switch {
	case s.n.dead:
		return nil, errDown
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return after, nil
}

// leave is the way back.
func (s *nodeStore) leave(after *Fault, err error) error {
	w := s.n.world
	if after != nil {
		w.fired(after, "")
		if after.Kind == StoreAfter {
			return errStore
		}
		s.n.crash(after.Span)
	}
	if w.script.World.StoreTime > 0 && w.sched.rng.Uint64()&3 == 0 {
		w.sched.step()
	}
	if s.n.dead {
		return errDown
	}
	return err
}

func (s *nodeStore) Accept(ctx context.Context, a protocol.Acceptance) (protocol.Task, bool, error) {
	after, err := s.enter(ctx, true)
	if err != nil {
		return protocol.Task{}, false, err
	}
	w := s.n.world
	w.audit.accepting(a)
	t, twin, err := s.Store.Accept(ctx, a)
	w.audit.accepted(a, t, twin, err)
	w.note("accept", t.ID, string(t.State), t.Version)
	if after != nil && err != nil {
		after = nil // it failed by itself
	}
	if lost := s.leave(after, err); lost != nil {
		return protocol.Task{}, false, lost
	}
	return t, twin, nil
}

func (s *nodeStore) Claim(ctx context.Context, now time.Time, limit int, decide func(protocol.Task) (protocol.WriteSet, bool)) ([]protocol.Task, error) {
	after, err := s.enter(ctx, true)
	if err != nil {
		return nil, err
	}
	w := s.n.world
	type step struct {
		old protocol.Task
		ws  protocol.WriteSet
	}
	var steps []step
	ts, err := s.Store.Claim(ctx, now, limit, func(t protocol.Task) (protocol.WriteSet, bool) {
		ws, ok := decide(t)
		if ok {
			w.audit.proposed(&t, &ws, w.sched.now)
			steps = append(steps, step{t, ws})
		}
		return ws, ok
	})
	w.stopped(err)
	for i := range ts {
		for j := range steps {
			if steps[j].old.ID == ts[i].ID && steps[j].old.Version+1 == ts[i].Version {
				w.audit.claimed(&ts[i], now)
				w.audit.written(&steps[j].old, &ts[i], &steps[j].ws)
			}
		}
	}
	if lost := s.leave(after, err); lost != nil && (err == nil || !errors.Is(lost, err)) {
		return nil, lost
	}
	return ts, err
}

func (s *nodeStore) Apply(ctx context.Context, ws protocol.WriteSet) (protocol.Task, error) {
	after, err := s.enter(ctx, true)
	if err != nil {
		return protocol.Task{}, err
	}
	w := s.n.world
	old, found := s.Store.Task(ctx, ws.Task.ID)
	holds := found == nil && ws.If.Holds(&old)
	if holds {
		w.audit.proposed(&old, &ws, w.sched.now)
	}
	t, err := s.Store.Apply(ctx, ws)
	w.stopped(err)
	switch {
	case err == nil:
		w.audit.written(&old, &t, &ws)
	case errors.Is(err, protocol.ErrStale):
		w.note("stale", ws.Task.ID, string(ws.Task.State), ws.Task.Version)
	}
	if after != nil && err != nil {
		after = nil
	}
	if lost := s.leave(after, err); lost != nil {
		return protocol.Task{}, lost
	}
	return t, nil
}

// stopped: the store keeps rows that break the protocol from being written.
// That it had to is a violation already.
func (w *world) stopped(err error) {
	if errors.Is(err, protocol.ErrInvariant) {
		w.audit.fail("I0", "the store stopped a write: %v", err)
	}
}

func (s *nodeStore) Post(ctx context.Context, entries ...protocol.Entry) error {
	after, err := s.enter(ctx, true)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Kind != protocol.Grant {
			s.n.world.audit.fail("I7", "a %s of task %s is posted on its own", e.Kind, e.TaskID)
		}
	}
	if err = s.Store.Post(ctx, entries...); err == nil {
		s.n.world.audit.post(entries, nil)
	} else {
		after = nil
	}
	return s.leave(after, err)
}

func (s *nodeStore) NextDue(ctx context.Context) (time.Time, bool, error) {
	return read2(ctx, s, func() (time.Time, bool, error) { return s.Store.NextDue(ctx) })
}

func (s *nodeStore) Allot(ctx context.Context, n int) (int64, error) {
	return read(ctx, s, func() (int64, error) { return s.Store.Allot(ctx, n) })
}

func (s *nodeStore) Task(ctx context.Context, id string) (protocol.Task, error) {
	return read(ctx, s, func() (protocol.Task, error) { return s.Store.Task(ctx, id) })
}

func (s *nodeStore) TaskByIdentity(ctx context.Context, h protocol.Hash) (protocol.Task, error) {
	return read(ctx, s, func() (protocol.Task, error) { return s.Store.TaskByIdentity(ctx, h) })
}

func (s *nodeStore) Tasks(ctx context.Context, q protocol.TaskQuery) ([]protocol.Task, error) {
	return read(ctx, s, func() ([]protocol.Task, error) { return s.Store.Tasks(ctx, q) })
}

func (s *nodeStore) Transitions(ctx context.Context, workspace string, after int64, limit int) ([]protocol.Transition, error) {
	return read(ctx, s, func() ([]protocol.Transition, error) { return s.Store.Transitions(ctx, workspace, after, limit) })
}

func (s *nodeStore) Record(ctx context.Context, workspace, id string) (protocol.Record, error) {
	return read(ctx, s, func() (protocol.Record, error) { return s.Store.Record(ctx, workspace, id) })
}

func (s *nodeStore) RecordByNumber(ctx context.Context, workspace string, n int64) (protocol.Record, error) {
	return read(ctx, s, func() (protocol.Record, error) { return s.Store.RecordByNumber(ctx, workspace, n) })
}

func (s *nodeStore) Records(ctx context.Context, q protocol.RecordQuery) ([]protocol.Record, error) {
	return read(ctx, s, func() ([]protocol.Record, error) { return s.Store.Records(ctx, q) })
}

func (s *nodeStore) Similar(ctx context.Context, workspace string, wire protocol.Wire, sc protocol.Scope, typ, key string, now time.Time) ([]protocol.Record, error) {
	return read(ctx, s, func() ([]protocol.Record, error) { return s.Store.Similar(ctx, workspace, wire, sc, typ, key, now) })
}

func (s *nodeStore) Workspace(ctx context.Context, id string) (protocol.Workspace, error) {
	return read(ctx, s, func() (protocol.Workspace, error) { return s.Store.Workspace(ctx, id) })
}

func (s *nodeStore) Balance(ctx context.Context, a protocol.Account) (protocol.Balance, error) {
	return read(ctx, s, func() (protocol.Balance, error) { return s.Store.Balance(ctx, a) })
}

func (s *nodeStore) Entries(ctx context.Context, workspace string) ([]protocol.Entry, error) {
	return read(ctx, s, func() ([]protocol.Entry, error) { return s.Store.Entries(ctx, workspace) })
}

func read[T any](ctx context.Context, s *nodeStore, f func() (T, error)) (T, error) {
	v, _, err := read2(ctx, s, func() (T, bool, error) { v, err := f(); return v, true, err })
	return v, err
}

func read2[T any](ctx context.Context, s *nodeStore, f func() (T, bool, error)) (T, bool, error) {
	var none T
	if _, err := s.enter(ctx, false); err != nil {
		return none, false, err
	}
	v, ok, err := f()
	return v, ok, err
}
