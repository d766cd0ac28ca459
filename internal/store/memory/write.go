package memory

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// Accept checks everything before it writes anything: that is what makes it a
// transaction here.
func (s *Store) Accept(_ context.Context, a protocol.Acceptance) (protocol.Task, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := a.Task
	sp := s.spaces[t.Workspace]
	if sp == nil {
		return protocol.Task{}, false, protocol.ErrNotFound
	}
	if h := t.Identity.Hash; !h.IsZero() {
		if twin := s.identities[h]; twin != nil {
			if w := twin.task.Identity.Window; w == 0 || a.At.Before(twin.task.CreatedAt.Add(w)) {
				return twin.task, true, nil
			}
		}
	}
	t.Version = 1
	if err := protocol.CheckTask(&t); err != nil {
		return protocol.Task{}, false, err
	}
	if s.tasks[t.ID] != nil {
		return protocol.Task{}, false, broken("task %s exists", t.ID)
	}
	if err := sp.admit(a.Records); err != nil {
		return protocol.Task{}, false, err
	}
	if err := sp.buriable(a.Tombstones); err != nil {
		return protocol.Task{}, false, err
	}
	if err := sp.ledger.post(a.Entries); err != nil {
		return protocol.Task{}, false, err
	}
	r := &row{task: t, heap: -1}
	s.tasks[t.ID] = r
	sp.file(r)
	if !t.Identity.Hash.IsZero() {
		s.identities[t.Identity.Hash] = r
	}
	sp.add(a.Records)
	for _, r := range a.Tombstones {
		if err := sp.replace(r); err != nil {
			return protocol.Task{}, false, err // cannot be: checked above, under the same lock
		}
	}
	for i := range a.Transitions {
		s.note(sp, r, &a.Transitions[i])
	}
	s.schedule(r)
	return t, false, nil
}

// Apply writes a set if its condition holds.
func (s *Store) Apply(_ context.Context, w protocol.WriteSet) (protocol.Task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.apply(w)
}

func (s *Store) apply(w protocol.WriteSet) (protocol.Task, error) {
	r := s.tasks[w.Task.ID]
	if r == nil {
		return protocol.Task{}, protocol.ErrNotFound
	}
	if !w.If.Holds(&r.task) {
		return protocol.Task{}, protocol.ErrStale
	}
	t := w.Task
	t.Version = r.task.Version + 1
	if err := protocol.CheckStep(&r.task, &t); err != nil {
		return protocol.Task{}, err
	}
	sp := s.spaces[t.Workspace]
	if err := sp.admit(w.Records); err != nil {
		return protocol.Task{}, err
	}
	if err := sp.ledger.post(w.Entries); err != nil {
		return protocol.Task{}, err
	}
	sp.add(w.Records)
	for _, s := range w.Superseded {
		if r := sp.records[s.ID]; r != nil && !r.Forgotten {
			if err := sp.replace(r.Supersede(s.By, t.UpdatedAt)); err != nil {
				return protocol.Task{}, err // cannot be: a tombstone has the owner of its record
			}
		}
	}
	if w.Projected && t.Plan != nil {
		for _, m := range t.Plan.Mutations {
			sp.project(m.RecordID)
		}
	}
	if w.Transition != nil {
		s.note(sp, r, w.Transition)
	}
	if h := t.Identity.Hash; w.Free && s.identities[h] == r {
		delete(s.identities, h)
	}
	r.task = t
	sp.file(r)
	s.schedule(r)
	return t, nil
}

// Claim takes due rows off the heap one by one, so that one it skips is looked
// at once a call, and puts all back. A row whose write an invariant stops is
// skipped as well: the errors come back beside what was claimed behind it.
func (s *Store) Claim(_ context.Context, now time.Time, limit int, decide func(protocol.Task) (protocol.WriteSet, bool)) ([]protocol.Task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []protocol.Task
	var skipped []*row
	var failed []error
	defer func() {
		for _, r := range skipped {
			s.schedule(r)
		}
	}()
	for len(out) < limit && len(s.due) > 0 && !s.due[0].at.After(now) {
		r := heap.Pop(&s.due).(*row)
		w, ok := decide(r.task)
		if !ok {
			skipped = append(skipped, r)
			continue
		}
		t, err := s.apply(w)
		if err != nil {
			skipped = append(skipped, r)
			failed = append(failed, err)
			continue
		}
		out = append(out, t)
		if r.heap >= 0 && !r.at.After(now) {
			heap.Remove(&s.due, r.heap) // due again as it was written: the next look's
			skipped = append(skipped, r)
		}
	}
	return out, errors.Join(failed...)
}

// PutRecord replaces a record under the same id and owner.
func (s *Store) PutRecord(_ context.Context, r protocol.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sp := s.spaces[r.Workspace]
	if sp == nil || sp.records[r.ID] == nil {
		return protocol.ErrNotFound
	}
	return sp.replace(r)
}

// Post adds grants.
func (s *Store) Post(_ context.Context, entries ...protocol.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range entries {
		if s.spaces[e.Account.Workspace] == nil || e.Account.Workspace != entries[0].Account.Workspace {
			return protocol.ErrNotFound
		}
	}
	if len(entries) == 0 {
		return nil
	}
	return s.spaces[entries[0].Account.Workspace].ledger.post(entries)
}

func broken(format string, args ...any) error {
	return fmt.Errorf("%w: %s", protocol.ErrInvariant, fmt.Sprintf(format, args...))
}
