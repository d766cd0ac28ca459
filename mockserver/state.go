package mockserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// stateVersion is of the form a snapshot is written in.
const stateVersion = 1

// state is a snapshot as JSON. It holds memory text: treat it as the memories.
type state struct {
	Version     int                   `json:"version"`
	Now         time.Time             `json:"now"`
	Workspaces  []protocol.Workspace  `json:"workspaces"`
	Tasks       []protocol.Task       `json:"tasks"`
	Held        []string              `json:"held"` // tasks whose identity is not free
	Records     []protocol.Record     `json:"records"`
	Entries     []protocol.Entry      `json:"entries"`
	Transitions []protocol.Transition `json:"transitions"`
}

// Reset forgets everything: records, tasks, ledger, journal, faults and their
// strikes, rate windows, the script and the comparison. Keys and the clock stay.
// Open waits end.
func (s *Server) Reset() {
	s.faults.forget()
	s.journal.clear()
	s.svc.Reset()
	s.SetScript(nil)
	s.SetSame(nil)
	store, err := s.cfg.open(firstNumber)
	if err == nil {
		err = s.core.replace(store)
	}
	if err != nil {
		panic(fmt.Sprintf("mockserver: an empty store refused its workspace: %v", err))
	}
}

// Snapshot is everything that is stored, as JSON, for Restore. Journal, faults
// and keys are not part of it.
func (s *Server) Snapshot() ([]byte, error) {
	store, _ := s.core.now()
	snap, err := store.Snapshot(context.Background())
	if err != nil {
		return nil, fmt.Errorf("mockserver: %w", err)
	}
	out := state{
		Version: stateVersion, Now: s.Now().UTC(), Workspaces: snap.Workspaces, Tasks: snap.Tasks, Records: snap.Records,
		Entries: snap.Entries, Transitions: snap.Transitions,
	}
	for _, id := range snap.Identities {
		out.Held = append(out.Held, id)
	}
	slices.Sort(out.Held)
	return json.Marshal(out)
}

var errState = errors.New("mockserver: not a snapshot of this version")

// Restore replaces everything that is stored by a snapshot. A task that ran
// when it was taken is taken up again when its lease is over. On an error the
// server is empty.
func (s *Server) Restore(snapshot []byte) error {
	var in state
	if err := json.Unmarshal(snapshot, &in); err != nil || in.Version != stateVersion {
		return errState
	}
	store, err := s.cfg.open(firstNumber)
	if err == nil {
		if err = in.into(context.Background(), store); err != nil {
			_ = store.Close()
		}
	}
	if err == nil {
		err = s.core.replace(store)
	}
	if err != nil {
		s.Reset()
		return fmt.Errorf("mockserver: the snapshot cannot be restored: %w", err)
	}
	return nil
}

// into writes the state as it was accepted once: workspaces, grants, then task
// by task.
func (in state) into(ctx context.Context, store protocol.Store) error {
	for _, w := range in.Workspaces {
		if err := store.PutWorkspace(ctx, w); err != nil {
			return err
		}
	}
	entries := map[string][]protocol.Entry{}
	for _, e := range in.Entries {
		if e.Kind == protocol.Grant {
			if err := store.Post(ctx, e); err != nil {
				return err
			}
			continue
		}
		entries[e.TaskID] = append(entries[e.TaskID], e)
	}
	records := map[string][]protocol.Record{}
	last := int64(0)
	for _, r := range in.Records {
		records[r.TaskID] = append(records[r.TaskID], r)
		last = max(last, r.Number)
	}
	transitions := map[string][]protocol.Transition{}
	for _, t := range in.Transitions {
		transitions[t.TaskID] = append(transitions[t.TaskID], t)
	}
	slices.SortStableFunc(in.Tasks, func(a, b protocol.Task) int { return a.CreatedAt.Compare(b.CreatedAt) })
	for _, t := range in.Tasks {
		if !slices.Contains(in.Held, t.ID) {
			t.Identity = protocol.Identity{}
		}
		a := protocol.Acceptance{Task: t, Entries: entries[t.ID], Records: records[t.ID], Transitions: transitions[t.ID], At: t.CreatedAt}
		if _, twin, err := store.Accept(ctx, a); err != nil || twin {
			return errors.Join(err, errState)
		}
	}
	// Numbers that were given once are not given again.
	first, err := store.Allot(ctx, 1)
	if err == nil && last > first {
		_, err = store.Allot(ctx, int(last-first))
	}
	return err
}
