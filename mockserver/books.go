package mockserver

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/service"
)

// Record is one stored memory, of any wire and workspace.
type Record struct {
	ID        string          `json:"id"`
	Number    int64           `json:"number"` // its id on /memory/*
	TaskID    string          `json:"task_id"`
	Workspace string          `json:"workspace"`
	Service   string          `json:"service"` // memorysync or fishmem
	EndUser   string          `json:"end_user"`
	AgentID   string          `json:"agent_id,omitempty"`
	RunID     string          `json:"run_id,omitempty"`
	Text      string          `json:"text"`
	Type      string          `json:"type"`
	Key       string          `json:"key"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
	CreatedAt time.Time       `json:"created_at"`
	Projected bool            `json:"projected"` // its vector is written
	Deleted   bool            `json:"deleted"`
}

// Task is what the server did for one accepted write.
type Task struct {
	ID           string    `json:"id"`
	Workspace    string    `json:"workspace"`
	Operation    string    `json:"operation"` // add, turn, infer, verbatim, delete or delete_all
	State        string    `json:"state"`     // PENDING, RUNNING, RETRYING, SUCCEEDED or FAILED
	Attempts     int       `json:"attempts"`
	FailureClass string    `json:"failure_class,omitempty"`
	Failure      string    `json:"failure,omitempty"`
	RecordIDs    []string  `json:"record_ids"`  // what it stored, or the record that was there already
	Stored       int       `json:"stored"`      // records it made itself
	KeyHash      string    `json:"key_hash"`    // SHA-256 of its identity, "" without one
	Redacted     bool      `json:"redacted"`    // its input is gone
	Transitions  []string  `json:"transitions"` // its states so far, oldest first
	CreatedAt    time.Time `json:"created_at"`
	CompletedAt  time.Time `json:"completed_at"`
}

// Ledger sums reservations, in writes; Units has the same in credits and adds.
type Ledger struct {
	Reserved int  `json:"reserved"` // ever made
	Settled  int  `json:"settled"`
	Released int  `json:"released"`
	Open     int  `json:"open"`
	Balanced bool `json:"balanced"` // debits equal credits, and each reservation ended at most once

	Units Units `json:"units"`
}

// Units are amounts of an account: credits or adds.
type Units struct {
	Reserved int64 `json:"reserved"` // ever held
	Settled  int64 `json:"settled"`  // paid
	Released int64 `json:"released"` // given back
}

// Records is every record of the server, oldest first; deleted ones are there
// as tombstones without their text.
func (s *Server) Records() []Record {
	snap := s.snapshot()
	out := make([]Record, 0, len(snap.Records))
	for _, r := range snap.Records {
		rec := Record{
			ID: r.ID, Number: r.Number, TaskID: r.TaskID, Workspace: r.Workspace, Service: string(r.Wire), Text: r.Text, Type: r.Type, Key: r.Key,
			EndUser: r.Scope.EndUser, Metadata: r.Metadata, CreatedAt: r.CreatedAt, Projected: r.Projected, Deleted: r.Forgotten,
		}
		if r.Wire == protocol.FishMem {
			rec.EndUser, rec.AgentID, rec.RunID = r.Scope.UserID, r.Scope.AgentID, r.Scope.RunID
		}
		out = append(out, rec)
	}
	slices.SortStableFunc(out, func(a, b Record) int {
		if c := a.CreatedAt.Compare(b.CreatedAt); c != 0 {
			return c
		}
		return cmp.Compare(a.Number, b.Number)
	})
	return out
}

// Tasks is every task of the server, oldest first.
func (s *Server) Tasks() []Task { return tasksIn(s.snapshot()) }

func tasksIn(snap protocol.Snapshot) []Task {
	states := map[string][]string{}
	slices.SortStableFunc(snap.Transitions, func(a, b protocol.Transition) int { return cmp.Compare(a.Number, b.Number) })
	for _, tr := range snap.Transitions {
		states[tr.TaskID] = append(states[tr.TaskID], string(tr.To))
	}
	out := make([]Task, 0, len(snap.Tasks))
	for _, t := range snap.Tasks {
		out = append(out, taskOf(t, states[t.ID]))
	}
	slices.SortStableFunc(out, func(a, b Task) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return out
}

func taskOf(t protocol.Task, states []string) Task {
	out := Task{
		ID: t.ID, Workspace: t.Workspace, Operation: operations[t.Kind], State: string(t.State), Attempts: t.Attempts,
		RecordIDs: []string{}, Redacted: t.Command == nil, Transitions: states, CreatedAt: t.CreatedAt, CompletedAt: t.CompletedAt,
	}
	if !t.Identity.Hash.IsZero() {
		out.KeyHash = t.Identity.Hash.String()
	}
	if t.Failure != nil {
		out.FailureClass, out.Failure = string(t.Failure.Class), t.Failure.Message
	}
	if t.Result != nil {
		for _, e := range t.Result.Records {
			out.RecordIDs = append(out.RecordIDs, e.ID)
			if !e.Existing {
				out.Stored++
			}
		}
	}
	return out
}

var operations = map[protocol.Kind]string{
	protocol.MemorySyncAdd: "add", protocol.Turn: "turn", protocol.Infer: "infer", protocol.Verbatim: "verbatim",
	protocol.Delete: "delete", protocol.DeleteAll: "delete_all",
}

// Check holds everything that is stored against the protocol's invariants: one
// task for a command, records if and only if it succeeded, one end for each
// reservation, plans that never change. nil is what a test wants at its end.
func (s *Server) Check() error {
	_, eng := s.core.now()
	return eng.Check(context.Background())
}

// Ledger sums what was reserved, settled and released, of all workspaces.
func (s *Server) Ledger() Ledger {
	return ledgerIn(s.snapshot(), func(string) bool { return true })
}

// LedgerOf sums what the writes under one identity came to; see TasksOf for
// what an identity is.
func (s *Server) LedgerOf(key string) Ledger {
	var ids []string
	for _, t := range s.TasksOf(key) {
		ids = append(ids, t.ID)
	}
	return ledgerIn(s.snapshot(), func(task string) bool { return slices.Contains(ids, task) })
}

func ledgerIn(snap protocol.Snapshot, of func(task string) bool) Ledger {
	out := Ledger{Balanced: true}
	ended := map[string]int{}
	for _, e := range snap.Entries {
		if !of(e.TaskID) {
			continue
		}
		switch e.Kind {
		case protocol.Reserve:
			out.Reserved++
			out.Units.Reserved += e.Amount
		case protocol.Settle:
			out.Settled++
			out.Units.Settled += e.Amount
			ended[e.Of]++
		case protocol.Release:
			out.Released++
			out.Units.Released += e.Amount
			ended[e.Of]++
		}
	}
	out.Open = out.Reserved - out.Settled - out.Released
	for _, n := range ended {
		out.Balanced = out.Balanced && n == 1
	}
	for _, b := range snap.Balances {
		out.Balanced = out.Balanced && b.Granted == b.Available+b.Reserved+b.Spent
	}
	out.Balanced = out.Balanced && out.Open >= 0
	return out
}

func (s *Server) ledgerOf(task string) Ledger {
	return ledgerIn(s.snapshot(), func(id string) bool { return id == task })
}

func (s *Server) snapshot() protocol.Snapshot {
	store, _ := s.core.now()
	snap, err := store.Snapshot(context.Background())
	if err != nil {
		return protocol.Snapshot{}
	}
	return snap
}

// TaskByClientRef finds the task of a /memory/add by the reference it was sent
// under, in the server's own workspace and default project.
func (s *Server) TaskByClientRef(endUser, ref string) (Task, bool) {
	return s.byIdentity(protocol.ClientRef(s.Workspace, s.Workspace, service.DefaultProject, endUser, ref))
}

// TaskByTurn finds the task of a turn by its replay key.
func (s *Server) TaskByTurn(user, speaker, occurredAt, text string) (Task, bool) {
	return s.byIdentity(protocol.ReplayKey(s.Workspace, s.Workspace, user, speaker, occurredAt, text))
}

// TaskByKey finds the task of a FishMem write by its Idempotency-Key.
func (s *Server) TaskByKey(key string) (Task, bool) {
	return s.byIdentity(protocol.CommandKey(s.Workspace, key))
}

// byIdentity gives the newest task that was ever accepted under an identity: a
// FAILED one frees its reference, and is still what became of it.
func (s *Server) byIdentity(h protocol.Hash) (Task, bool) {
	var found Task
	ok := false
	for _, t := range s.Tasks() {
		if t.KeyHash == h.String() {
			found, ok = t, true
		}
	}
	return found, ok
}

// TasksOf finds the tasks of an identity as a caller writes it: an
// Idempotency-Key, a client_ref or the text of a turn, of any end user that the
// journal knows.
func (s *Server) TasksOf(key string) []Task {
	hashes := map[string]bool{protocol.CommandKey(s.Workspace, key).String(): true}
	for _, r := range s.Journal() {
		if r.Identity.String() == key {
			hashes[s.hashOf(r).String()] = true
		}
	}
	var out []Task
	for _, t := range s.Tasks() {
		if hashes[t.KeyHash] {
			out = append(out, t)
		}
	}
	return out
}
