package mockserver_test

import (
	"context"
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/mockserver"
)

func (m *machine) Infer(rt *rapid.T) { m.send(rt, m.command(rt, protocol.Infer, "")) }

func (m *machine) Verbatim(rt *rapid.T) {
	m.send(rt, m.command(rt, protocol.Verbatim, `,"infer":false`))
}

// command is a FishMem write. Both kinds share their keys, so that they
// conflict.
func (m *machine) command(rt *rapid.T, kind protocol.Kind, more string) message {
	keys := []string{"k0", "k1", "k2", "k3"}
	if kind == protocol.Verbatim {
		keys = append(keys, "")
	}
	key := rapid.SampledFrom(keys).Draw(rt, "key")
	text := m.input(rt, key)
	msg := message{kind: kind, path: "/v1/memories", text: text, key: key, body: fmt.Sprintf(`{"content":%q,"user_id":"sam"%s}`, text, more)}
	if key != "" {
		msg.identity = protocol.CommandKey(m.srv.Workspace, key)
	}
	return msg
}

// Replay sends something again, byte by byte.
func (m *machine) Replay(rt *rapid.T) {
	if len(m.sent) == 0 {
		rt.Skip()
	}
	m.send(rt, rapid.SampledFrom(m.sent).Draw(rt, "again"))
}

// Twins sends a new command twice in one moment: one of the two is the replay.
func (m *machine) Twins(rt *rapid.T) {
	msg := m.command(rt, protocol.Infer, "")
	if m.commands[msg.key].body != "" || m.removed[msg.key] != "" {
		rt.Skip()
	}
	m.sent = append(m.sent, msg)
	one, two := m.start(msg), m.start(msg)
	m.rest(one)
	m.rest(two)
	made := m.newTasks(one.before)
	if len(made) > 1 {
		rt.Fatalf("I1: twins made the tasks %v", made)
	}
	for _, id := range made {
		m.commands[msg.key], m.texts[id] = msg, msg.text
	}
	// Which came first is not known; a refusal or a loss of either is checked
	// by what the step left behind.
	m.open = slices.DeleteFunc(m.open, func(c *call) bool { return c == one || c == two })
	for _, c := range []*call{one, two} {
		select {
		case <-c.done:
			if id, _ := c.answer.fields()["event_id"].(string); c.lost == nil && c.answer.status == 202 && !slices.Contains(made, id) {
				rt.Errorf("I2: a twin got %s of %v", c.answer.body, made)
			}
		default:
			c.hungUp = true
			c.cancel()
		}
	}
	synctest.Wait()
}

// Redrive starts an event again, whatever it is; one that can be started again
// when there is one, or most draws would be refused.
func (m *machine) Redrive(rt *rapid.T) {
	if len(m.last.Tasks) == 0 {
		rt.Skip()
	}
	before := m.srv.Stored()
	tasks := slices.DeleteFunc(slices.Clone(before.Tasks), func(t protocol.Task) bool {
		return t.Kind != protocol.Infer || (t.State != protocol.Failed && t.State != protocol.Retrying)
	})
	if len(tasks) == 0 || rapid.IntRange(0, 3).Draw(rt, "any") == 0 {
		tasks = before.Tasks
	}
	t := rapid.SampledFrom(tasks).Draw(rt, "task")
	drained := m.fired(mockserver.ExhaustCredits)
	got := m.now(rt, "POST", "/v1/operations/"+t.ID+"/retry", "", "")
	synctest.Wait()
	want := 202
	switch {
	case m.fired(mockserver.ExhaustCredits) > drained:
		want = 402
	case t.Kind != protocol.Infer || t.State == protocol.Succeeded || (t.State == protocol.Failed && t.Command == nil):
		want = 404 // also what FAILED longer ago than its input is kept
	case t.State == protocol.Failed && !m.affordable(before, protocol.Infer):
		want = 402
	}
	if got.status != want {
		rt.Errorf("redrive of a %s %s: %d %s, want %d", t.State, t.Kind, got.status, got.body, want)
	}
	after := taskIn(m.srv.Stored(), t.ID)
	switch {
	case want != 202:
		m.untouched(rt, before, "a refused redrive")
	case t.State == protocol.Failed && after.Run != t.Run+1, t.State != protocol.Failed && after.Run != t.Run:
		rt.Errorf("redrive of a %s task: run %d after %d", t.State, after.Run, t.Run)
	default:
		m.redriven = t.ID
	}
	m.settle(rt)
}

// Forget deletes records of the add wire, some of them for the second time.
func (m *machine) Forget(rt *rapid.T) {
	before := m.srv.Stored()
	rs := slices.DeleteFunc(slices.Clone(before.Records), func(r protocol.Record) bool { return r.Wire != protocol.MemorySync })
	if len(rs) == 0 {
		rt.Skip()
	}
	r := rapid.SampledFrom(rs).Draw(rt, "record")
	want := 1.0
	if r.Forgotten {
		want = 0
	}
	got := m.now(rt, "DELETE", "/memory/forget", fmt.Sprintf(`{"memory_ids":[%d]}`, r.Number), "")
	if got.status != 200 || got.fields()["deleted"] != want {
		rt.Errorf("forget of %d: %d %s, want %v deleted", r.Number, got.status, got.body, want)
	}
	m.unbilled(rt, before)
	m.rested(rt)
}

// Delete deletes a record of the other wire, under a key that may belong to
// another command.
func (m *machine) Delete(rt *rapid.T) {
	before := m.srv.Stored()
	rs := slices.DeleteFunc(slices.Clone(before.Records), func(r protocol.Record) bool { return r.Wire != protocol.FishMem })
	if len(rs) == 0 {
		rt.Skip()
	}
	r := rapid.SampledFrom(rs).Draw(rt, "record")
	key := rapid.SampledFrom([]string{"", "k0", "k1", "d0"}).Draw(rt, "key")
	path := "/v1/memories/" + r.ID
	got := m.now(rt, "DELETE", path, "", key)
	want := 200
	switch {
	case key != "" && (m.commands[key].body != "" || (m.removed[key] != "" && m.removed[key] != path)):
		want = 409
	case key != "" && m.removed[key] == path: // its replay
	case r.Forgotten:
		want = 404
	}
	if got.status != want {
		rt.Errorf("delete under %q: %d %s, want %d", key, got.status, got.body, want)
	}
	if got.status == 200 && key != "" {
		m.removed[key] = path
	}
	m.unbilled(rt, before)
	m.rested(rt)
}

// unbilled asserts that a step neither made nor moved a write, and no money.
func (m *machine) unbilled(rt *rapid.T, before protocol.Snapshot) {
	synctest.Wait()
	writes := func(s protocol.Snapshot) []protocol.Task {
		return slices.DeleteFunc(slices.Clone(s.Tasks), func(t protocol.Task) bool { return t.Kind == protocol.Delete })
	}
	if after := m.srv.Stored(); !same(writes(before), writes(after)) || !same(before.Entries, after.Entries) {
		rt.Errorf("deleting a record moved a task or money")
	}
}

// rested is the end of a step that sends no write.
func (m *machine) rested(rt *rapid.T) {
	synctest.Wait()
	m.settle(rt)
}

// HangUp ends a caller that waits. Its task goes on.
func (m *machine) HangUp(rt *rapid.T) {
	if len(m.open) == 0 {
		rt.Skip()
	}
	c := rapid.SampledFrom(m.open).Draw(rt, "caller")
	before := m.srv.Stored()
	c.hungUp = true
	c.cancel()
	synctest.Wait()
	m.untouched(rt, before, "hanging up")
	m.settle(rt)
}

// Arm lets something go wrong. Faults of a connection are for writes only, so
// that looking at the server strikes none.
func (m *machine) Arm(rt *rapid.T) {
	kind := rapid.SampledFrom([]mockserver.Kind{
		mockserver.DropResponse, mockserver.Truncate, mockserver.Stall, mockserver.Reset, mockserver.Status,
		mockserver.IdempotencyIncomplete, mockserver.ReservationInProgress,
		mockserver.ProviderTimeout, mockserver.ProviderInvalid, mockserver.ProviderDown, mockserver.ProviderRefuses, mockserver.ProviderRejects,
		mockserver.KillRunner, mockserver.FreezeRunner, mockserver.ExpireLease,
		mockserver.LoseWakeup, mockserver.DuplicateWakeup, mockserver.DelayWakeup,
		mockserver.FailProjection, mockserver.ExhaustCredits, mockserver.ExhaustQuota,
	}).Draw(rt, "kind")
	f := mockserver.Fault{Kind: kind, Times: rapid.IntRange(1, 5).Draw(rt, "times"), Delay: 200 * time.Millisecond}
	switch kind {
	case mockserver.DropResponse, mockserver.Truncate, mockserver.Stall, mockserver.Reset, mockserver.Status, mockserver.IdempotencyIncomplete, mockserver.ReservationInProgress:
		f.Route = rapid.SampledFrom([]string{"POST /memory/add", "POST /v1/memory/add_turn", "POST /v1/memories"}).Draw(rt, "route")
		f.Bytes = 5
	case mockserver.KillRunner, mockserver.FreezeRunner, mockserver.ExpireLease:
		f.Point = rapid.SampledFrom([]mockserver.Point{mockserver.BeforeInference, mockserver.AfterInference, mockserver.AfterPlan,
			mockserver.AfterCommit, mockserver.BeforeFinish}).Draw(rt, "point")
	}
	a := m.srv.Arm(f)
	m.armed = append(m.armed, a)
	m.kinds[a], m.before[a] = kind, f.Point == mockserver.BeforeInference
}

// Disarm heals everything, and lets go of runners and answers that are held.
func (m *machine) Disarm(rt *rapid.T) {
	m.srv.Disarm()
	m.blind -= m.blinded()
	m.armed, m.kinds = nil, map[*mockserver.Armed]mockserver.Kind{}
	m.rested(rt)
}

// Advance passes a back-off, a lease, an hour, or what is kept of a turn.
func (m *machine) Advance(rt *rapid.T) {
	m.jump(rt, rapid.SampledFrom([]time.Duration{150 * time.Millisecond, 700 * time.Millisecond, time.Hour, 31 * 24 * time.Hour}).Draw(rt, "by"))
}

// jump moves the clock. Every task that was due is in somebody's hands now,
// although nobody may have been told of it (I9).
func (m *machine) jump(rt *rapid.T, d time.Duration) {
	m.srv.Advance(d)
	synctest.Wait()
	if m.standing() < 8 {
		for _, t := range m.srv.Stored().Tasks {
			if at, ok := t.Due(); ok && !at.After(m.srv.Now()) {
				rt.Errorf("I9: task %s is %s, due since %s, and nobody took it", t.ID, t.State, m.srv.Now().Sub(at))
			}
		}
	}
	m.settle(rt)
}

// standing is how many runners a fault holds at most.
func (m *machine) standing() int { return m.fired(mockserver.FreezeRunner) }

// blinded is how many runners had their lease taken away before an inference.
func (m *machine) blinded() int {
	n := 0
	for _, a := range m.armed {
		if m.kinds[a] == mockserver.ExpireLease && m.before[a] {
			n += a.Fired()
		}
	}
	return n
}

// readSome is a reader of transitions that comes by after each step, takes a
// few at most, and falls behind.
func (m *machine) readSome(rt *rapid.T, s protocol.Snapshot) {
	after := int64(0)
	if n := len(m.history); n > 0 {
		after = m.history[n-1].Position
	}
	some, err := m.watch.Transitions(context.Background(), m.srv.Workspace, after, 2)
	if err != nil {
		rt.Fatal(err)
	}
	m.history = append(m.history, some...)
	for i := len(m.history) - len(some); i < len(m.history); i++ {
		if i >= len(s.Transitions) || m.history[i] != s.Transitions[i] {
			rt.Fatalf("I11: the reader has another transition %d than the store", i)
		}
	}
	if len(some) == 0 && len(m.history) != len(s.Transitions) {
		rt.Fatalf("I11: the reader saw %d transitions of %d and gets no more", len(m.history), len(s.Transitions))
	}
}
