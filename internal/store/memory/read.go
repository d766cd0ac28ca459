package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

func (s *Store) NextDue(context.Context) (time.Time, bool, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.due) == 0 {
		return time.Time{}, false, nil
	}
	return s.due[0].at, true, nil
}

func (s *Store) Task(_ context.Context, id string) (protocol.Task, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if r := s.tasks[id]; r != nil {
		return r.task, nil
	}
	return protocol.Task{}, protocol.ErrNotFound
}

func (s *Store) TaskByIdentity(_ context.Context, h protocol.Hash) (protocol.Task, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if r := s.identities[h]; r != nil {
		return r.task, nil
	}
	return protocol.Task{}, protocol.ErrNotFound
}

func (s *Store) Transitions(_ context.Context, workspace string, after int64, limit int) ([]protocol.Transition, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sp := s.spaces[workspace]
	if sp == nil {
		return nil, nil
	}
	first, end := sp.changes.from(func(c *change) bool { return c.position > after }), sp.changes.n
	if limit > 0 {
		end = min(end, first+limit)
	}
	return sp.history(first, end), nil
}

func (s *Store) Record(_ context.Context, workspace, id string) (protocol.Record, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if sp := s.spaces[workspace]; sp != nil && sp.records[id] != nil {
		return *sp.records[id], nil
	}
	return protocol.Record{}, protocol.ErrNotFound
}

func (s *Store) RecordByNumber(_ context.Context, workspace string, n int64) (protocol.Record, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if sp := s.spaces[workspace]; sp != nil && sp.byNumber[n] != nil {
		return *sp.byNumber[n], nil
	}
	return protocol.Record{}, protocol.ErrNotFound
}

func (s *Store) Records(_ context.Context, q protocol.RecordQuery) ([]protocol.Record, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sp := s.spaces[q.Workspace]
	os, n := owners(q.Wire, q.Scope)
	if sp == nil || n == 0 || sp.byOwner[os[0]] == nil {
		return nil, nil
	}
	var out []protocol.Record
	for c := sp.byOwner[os[0]].newest(q.After); q.Limit == 0 || len(out) < q.Limit; c.skip() {
		r, ok := c.peek()
		if !ok {
			break
		}
		if r.Wire == q.Wire && r.Live(q.Now) && matches(r.Scope, q.Scope) && (!q.Projected || r.Projected) {
			out = append(out, *r)
		}
	}
	return out, nil
}

func (s *Store) Similar(_ context.Context, workspace string, w protocol.Wire, sc protocol.Scope, typ, key string, now time.Time) ([]protocol.Record, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sp := s.spaces[workspace]
	if sp == nil {
		return nil, nil
	}
	var out []protocol.Record
	for _, r := range sp.byTopic[topicIn(w, sc, typ, key)] {
		if r.Live(now) && r.Wire == w && r.Scope == sc && r.Type == typ && r.Key == key {
			out = append(out, *r)
		}
	}
	return out, nil
}

func (s *Store) Balance(_ context.Context, a protocol.Account) (protocol.Balance, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if sp := s.spaces[a.Workspace]; sp != nil && sp.ledger.balances[a] != nil {
		return *sp.ledger.balances[a], nil
	}
	return protocol.Balance{}, nil
}

func (s *Store) Entries(_ context.Context, workspace string) ([]protocol.Entry, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if sp := s.spaces[workspace]; sp != nil {
		return sp.ledger.entries.all(), nil
	}
	return nil, nil
}

// Snapshot copies everything, tasks and records by creation and transitions by
// position.
func (s *Store) Snapshot(context.Context) (protocol.Snapshot, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := protocol.Snapshot{Identities: make(map[protocol.Hash]string, len(s.identities))}
	for h, r := range s.identities {
		out.Identities[h] = r.task.ID
	}
	for _, id := range slices.Sorted(maps.Keys(s.spaces)) {
		sp := s.spaces[id]
		out.Workspaces = append(out.Workspaces, sp.workspace)
		for _, l := range sp.tasks {
			for _, rows := range l.blocks {
				for _, r := range rows {
					out.Tasks = append(out.Tasks, r.task)
				}
			}
		}
		for _, r := range sp.records {
			out.Records = append(out.Records, *r)
		}
		out.Entries = append(out.Entries, sp.ledger.entries.all()...)
		for _, b := range sp.ledger.balances {
			out.Balances = append(out.Balances, *b)
		}
		out.Transitions = append(out.Transitions, sp.history(0, sp.changes.n)...)
	}
	slices.SortFunc(out.Tasks, func(a, b protocol.Task) int {
		return cmp.Or(cmp.Compare(a.Workspace, b.Workspace), a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(out.Records, func(a, b protocol.Record) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Number, b.Number), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(out.Transitions, func(a, b protocol.Transition) int { return cmp.Compare(a.Position, b.Position) })
	return out, nil
}
