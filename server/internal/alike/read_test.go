package alike_test

import (
	"pgregory.net/rapid"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

func (m *machine) similar(rt *rapid.T, workspace string, sc protocol.Scope) []protocol.Record {
	rs, _ := all(rt, m, func(s protocol.Store) ([]protocol.Record, error) {
		rs, err := s.Similar(m.ctx, workspace, protocol.MemorySync, sc, "fact", "self/x", m.now)
		return some(rs), err
	})
	return rs
}

// some is nil for nothing.
func some[T any](in []T) []T {
	if len(in) == 0 {
		return nil
	}
	return in
}

func plains(ts []protocol.Task, err error) ([]protocol.Task, error) {
	var out []protocol.Task
	for _, t := range ts {
		out = append(out, plain(t))
	}
	return out, err
}

// read asks every list and look-up a question.
func (m *machine) read(rt *rapid.T) {
	w := rapid.SampledFrom(append(workspaceIDs, "nobody")).Draw(rt, "read workspace")
	limit := rapid.IntRange(0, 3).Draw(rt, "read limit")
	tq := protocol.TaskQuery{Workspace: w, Limit: limit}
	if rapid.Bool().Draw(rt, "read kinds") {
		tq.Kinds = []protocol.Kind{protocol.Infer, protocol.Verbatim}
	}
	tq.State = rapid.SampledFrom([]protocol.State{"", protocol.Pending, protocol.Running, protocol.Succeeded, protocol.Failed}).Draw(rt, "read state")
	rq := protocol.RecordQuery{Workspace: w, Wire: protocol.FishMem, Scope: protocol.Scope{UserID: users.Draw(rt, "read user")}, Now: m.now, Limit: limit, Projected: rapid.Bool().Draw(rt, "read projected")}
	switch rapid.IntRange(0, 3).Draw(rt, "read scope") {
	case 0:
		rq.Scope = protocol.Scope{AgentID: "desk"}
	case 1:
		rq.Wire, rq.Scope = protocol.MemorySync, protocol.Scope{Tenant: "default", EndUser: rq.Scope.UserID}
	case 2:
		rq.Wire, rq.Scope = protocol.MemorySync, protocol.Scope{}
	}
	if n := len(m.last.Tasks); n > 0 && rapid.Bool().Draw(rt, "read after") {
		t := m.last.Tasks[rapid.IntRange(0, n-1).Draw(rt, "read place")]
		tq.After = &protocol.Place{Created: t.CreatedAt, ID: t.ID}
		rq.After = &protocol.Place{Created: t.CreatedAt, ID: "n"}
		all(rt, m, func(s protocol.Store) (protocol.Task, error) {
			got, err := s.Task(m.ctx, t.ID)
			return plain(got), err
		})
		all(rt, m, func(s protocol.Store) (protocol.Task, error) {
			got, err := s.TaskByIdentity(m.ctx, t.Identity.Hash)
			return plain(got), err
		})
		all(rt, m, func(s protocol.Store) (protocol.Balance, error) { return s.Balance(m.ctx, t.Account) })
	}
	all(rt, m, func(s protocol.Store) ([]protocol.Task, error) { return plains(s.Tasks(m.ctx, tq)) })
	all(rt, m, func(s protocol.Store) ([]protocol.Record, error) {
		rs, err := s.Records(m.ctx, rq)
		return some(rs), err
	})
	all(rt, m, func(s protocol.Store) ([]protocol.Entry, error) {
		es, err := s.Entries(m.ctx, w)
		return some(es), err
	})
	m.similar(rt, w, protocol.Scope{Tenant: "default", EndUser: rq.Scope.EndUser})
	if n := len(m.last.Records); n > 0 {
		r := m.last.Records[rapid.IntRange(0, n-1).Draw(rt, "read record")]
		all(rt, m, func(s protocol.Store) (protocol.Record, error) { return s.Record(m.ctx, w, r.ID) })
		all(rt, m, func(s protocol.Store) (protocol.Record, error) { return s.RecordByNumber(m.ctx, w, r.Number) })
	}
	// The history, read page by page from the beginning.
	all(rt, m, func(s protocol.Store) ([]protocol.Transition, error) {
		var out []protocol.Transition
		for {
			var after int64
			if n := len(out); n > 0 {
				after = out[n-1].Position
			}
			page, err := s.Transitions(m.ctx, w, after, 7)
			if err != nil || len(page) == 0 {
				rank(out)
				return out, err
			}
			out = append(out, page...)
		}
	})
}
