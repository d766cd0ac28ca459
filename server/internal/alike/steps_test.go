package alike_test

import (
	"errors"
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

var errRefused = errors.New("refused")

var (
	keys  = rapid.SampledFrom([]string{"a", "b", "c", ""})
	users = rapid.SampledFrom([]string{"sam", "kim"})
	texts = rapid.SampledFrom([]string{"I like tea", "I like <b>coffee</b> & \u0000 \u2028", "x"})
)

// Accept proposes a command: new, a twin, a conflict, or one the account does
// not cover.
func (m *machine) Accept(rt *rapid.T) {
	w := m.spaces[rapid.SampledFrom(workspaceIDs).Draw(rt, "workspace")]
	c := protocol.Command{Text: texts.Draw(rt, "text"), Tags: []string{}, Metadata: []byte("{ \"b\": 1.0,\"a\":\"<\"}")}
	user := users.Draw(rt, "user")
	var targets []protocol.Record
	switch c.Kind = rapid.SampledFrom([]protocol.Kind{protocol.Infer, protocol.Infer, protocol.Verbatim, protocol.MemorySyncAdd, protocol.MemorySyncAdd, protocol.Turn, protocol.DeleteAll}).Draw(rt, "kind"); c.Kind {
	case protocol.MemorySyncAdd:
		c.Scope, c.ClientRef = protocol.Scope{Tenant: "default", EndUser: user}, keys.Draw(rt, "ref")
		c.TTL = rapid.SampledFrom([]time.Duration{0, time.Hour, 290 * 365 * 24 * time.Hour}).Draw(rt, "ttl")
	case protocol.Turn:
		c.Scope, c.Speaker = protocol.Scope{Tenant: "default", EndUser: user}, "user"
	default:
		c.Scope, c.Key = protocol.Scope{UserID: user, AgentID: "desk"}, keys.Filter(func(s string) bool { return s != "" }).Draw(rt, "key")
	}
	if c.Kind == protocol.DeleteAll {
		c.Text, c.Tags, c.Metadata = "", nil, nil
		for _, r := range m.last.Records {
			// A tombstone among them makes the whole of it stale.
			if r.Workspace == w.ID && r.Wire == protocol.FishMem && rapid.Bool().Draw(rt, "take") {
				targets = append(targets, r)
			}
		}
	}
	m.tasks++
	p := protocol.Proposal{Workspace: w, Command: &c, TaskID: fmt.Sprintf("task_%04d", m.tasks), MaxAttempts: 2, Now: m.now, Targets: targets}
	doubled := rapid.IntRange(0, 19).Draw(rt, "old id") == 0
	if doubled {
		p.TaskID = "task_0001"
	}
	type answer struct {
		Task protocol.Task
		Twin bool
	}
	all(rt, m, func(s protocol.Store) (answer, error) {
		t, twin, err := s.Accept(m.ctx, protocol.Accept(p))
		switch {
		case err != nil && doubled:
			return answer{}, errRefused // of two reasons, either may be told
		case err != nil:
			return answer{}, err
		}
		return answer{plain(t), twin}, nil
	})
}

// Advance moves the clock by a little, past a lease, or past a window.
func (m *machine) Advance(rt *rapid.T) {
	m.now = m.now.Add(rapid.SampledFrom([]time.Duration{time.Nanosecond, time.Second, time.Minute, 31 * 24 * time.Hour}).Draw(rt, "by"))
}

// Claim takes some of what is due, and may pass over some.
func (m *machine) Claim(rt *rapid.T) {
	m.steps++
	token := fmt.Sprintf("token_%04d", m.steps)
	limit := rapid.IntRange(1, 3).Draw(rt, "limit")
	skip := rapid.SampledFrom([]byte{'x', '1', '2', '3'}).Draw(rt, "skip")
	ts, err := all(rt, m, func(s protocol.Store) ([]protocol.Task, error) {
		ts, err := s.Claim(m.ctx, m.now, limit, func(t protocol.Task) (protocol.WriteSet, bool) {
			ws, _, write := protocol.Claim(t, "runner", token, 30*time.Second, m.now)
			return ws, write && t.ID[len(t.ID)-1] != skip
		})
		var out []protocol.Task
		for _, t := range ts {
			out = append(out, plain(t))
		}
		return out, err
	})
	if err != nil {
		rt.Fatal(err)
	}
	m.held = append(m.held, ts...)
}

// Step is the next write of a runner, or of one that has lost its lease since.
func (m *machine) Step(rt *rapid.T) {
	if len(m.held) == 0 {
		rt.Skip("nobody holds a task")
	}
	at := rapid.IntRange(0, len(m.held)-1).Draw(rt, "of")
	t := m.held[at]
	if t.State != protocol.Running && t.State != protocol.Succeeded {
		rt.Skip("it was ended, not claimed")
	}
	var ws protocol.WriteSet
	var err error
	fails := []protocol.Class{protocol.Infrastructure, protocol.InvalidOutput, protocol.Rejected, protocol.ProjectionError}
	switch move := rapid.IntRange(0, 9).Draw(rt, "move"); {
	case t.State == protocol.Succeeded:
		ws = protocol.Projected(t, m.now)
	case move == 0:
		ws = protocol.Extend(t, 30*time.Second, m.now)
	case move == 1:
		f := protocol.Fail(rapid.SampledFrom(fails).Draw(rt, "class"), "it failed")
		ws = protocol.Failing(t, f, m.spaces[t.Workspace], 5*time.Second, m.now)
	case t.Plan == nil:
		facts, judged, first := m.facts(rt, t)
		ws, err = protocol.FreezePlan(t, facts, judged, first, m.now)
	case !t.Committed:
		ws, err = protocol.Commit(t, m.now)
	case t.Projection == protocol.ProjectionPending && move != 2:
		ws = protocol.Projected(t, m.now)
	default:
		ws, err = protocol.Finish(t, m.now)
	}
	if err != nil {
		rt.Fatal(err)
	}
	if rapid.IntRange(0, 19).Draw(rt, "broken") == 0 {
		ws.Task.Attempts = ws.Task.MaxAttempts + 1
	}
	got, err := all(rt, m, func(s protocol.Store) (protocol.Task, error) {
		t, err := s.Apply(m.ctx, ws)
		return plain(t), err
	})
	if err == nil {
		m.held[at] = got
	}
}

func (m *machine) facts(rt *rapid.T, t protocol.Task) (facts []protocol.Fact, judged []protocol.Judgment, first int64) {
	for i := range rapid.IntRange(0, 2).Draw(rt, "facts") {
		facts = append(facts, protocol.Fact{Text: fmt.Sprint(texts.Draw(rt, "fact"), i), Type: "fact", Key: "self/x", Replaces: true})
	}
	judged = make([]protocol.Judgment, len(facts))
	if t.Kind.Wire() == protocol.MemorySync {
		rs := m.similar(rt, t.Workspace, t.Scope)
		for i := range judged {
			switch {
			case len(rs) == 0:
			case rapid.Bool().Draw(rt, "existing"):
				judged[i].Existing = &rs[0]
			default:
				judged[i].Supersedes = []string{rs[len(rs)-1].ID, "none"}
			}
		}
	}
	if n := protocol.Numbers(t.Kind, judged); n > 0 {
		first, _ = all(rt, m, func(s protocol.Store) (int64, error) { return s.Allot(m.ctx, n) })
	}
	return facts, judged, first
}

// Redrive starts any task again that lets itself be.
func (m *machine) Redrive(rt *rapid.T) {
	if len(m.last.Tasks) == 0 {
		rt.Skip("no task")
	}
	t := rapid.SampledFrom(m.last.Tasks).Draw(rt, "task")
	ws, change, err := protocol.Redrive(t, m.spaces[t.Workspace], m.now)
	if err != nil || !change {
		rt.Skip("not redrivable")
	}
	all(rt, m, func(s protocol.Store) (protocol.Task, error) {
		t, err := s.Apply(m.ctx, ws)
		return plain(t), err
	})
}

// PutRecord edits a record, forgets it, or tries to give it to another.
func (m *machine) PutRecord(rt *rapid.T) {
	if len(m.last.Records) == 0 {
		rt.Skip("no record")
	}
	r := rapid.SampledFrom(m.last.Records).Draw(rt, "record")
	switch rapid.IntRange(0, 3).Draw(rt, "how") {
	case 0, 1:
		r = r.Forget(m.now)
	case 2:
		r.Text, r.UpdatedAt = "edited", m.now
	case 3:
		r.Scope.EndUser += "?"
	}
	all(rt, m, func(s protocol.Store) (string, error) { return "", s.PutRecord(m.ctx, r) })
}

// Post grants, or takes back, perhaps more than there is.
func (m *machine) Post(rt *rapid.T) {
	w := m.spaces[rapid.SampledFrom(append(workspaceIDs, "nobody")).Draw(rt, "workspace")]
	if w.ID == "" {
		w.ID = "nobody"
	}
	a := protocol.AccountAt(w.ID, rapid.SampledFrom([]protocol.Unit{protocol.Adds, protocol.Credits}).Draw(rt, "unit"), m.now)
	id := fmt.Sprint("grant", rapid.IntRange(0, 5).Draw(rt, "id"), ":", w.ID, ":", a.Unit, ":", a.Period)
	amount := rapid.Int64Range(-3, 5).Draw(rt, "amount")
	all(rt, m, func(s protocol.Store) (string, error) {
		return "", s.Post(m.ctx, protocol.Opening(w, a, m.now), protocol.Entry{ID: id, Account: a, Kind: protocol.Grant, Amount: amount, At: m.now})
	})
}

// PutWorkspace changes what a workspace may do.
func (m *machine) PutWorkspace(rt *rapid.T) {
	w := m.spaces[rapid.SampledFrom(workspaceIDs).Draw(rt, "workspace")]
	w.StrictQuota = !w.StrictQuota
	w.Extraction.InvalidOutputAttempts = rapid.IntRange(0, 2).Draw(rt, "invalid")
	m.put(rt, w)
}
