package mockserver_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/mockserver"
)

func taskIn(s protocol.Snapshot, id string) protocol.Task {
	for _, t := range s.Tasks {
		if t.ID == id {
			return t
		}
	}
	return protocol.Task{}
}

// newTasks is what was accepted since.
func (m *machine) newTasks(before protocol.Snapshot) []string {
	var out []string
	for _, t := range m.srv.Stored().Tasks {
		if taskIn(before, t.ID).ID == "" {
			out = append(out, t.ID)
		}
	}
	return out
}

// affordable says that the account could pay for one more.
func (m *machine) affordable(s protocol.Snapshot, k protocol.Kind) bool {
	unit, price := protocol.Adds, int64(1)
	if k.Wire() == protocol.FishMem {
		unit, price = protocol.Credits, map[protocol.Kind]int64{protocol.Infer: 2, protocol.Verbatim: 1}[k]
	}
	account := protocol.AccountAt(m.srv.Workspace, unit, m.srv.Now())
	for _, b := range s.Balances {
		if b.Account == account {
			return b.Available >= price
		}
	}
	return true // not opened yet: nothing was taken
}

// untouched asserts that a step left everything as it was.
func (m *machine) untouched(rt *rapid.T, before protocol.Snapshot, what string) {
	if after := m.srv.Stored(); !same(before.Tasks, after.Tasks) || !same(before.Records, after.Records) || !same(before.Entries, after.Entries) ||
		len(before.Transitions) != len(after.Transitions) {
		rt.Errorf("I2: %s had an effect", what)
	}
}

func same[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || reflect.DeepEqual(a, b)) }

// fault is what struck a call, and whether that was before the service saw it.
func (m *machine) fault(c *call) (kind mockserver.Kind, before bool) {
	for _, r := range slices.Backward(m.srv.Journal()) {
		if r.Header.Get("X-Machine-Seq") == fmt.Sprint(c.seq) {
			kind = r.Fault
			break
		}
	}
	return kind, slices.Contains([]mockserver.Kind{mockserver.Reset, mockserver.Status, mockserver.IdempotencyIncomplete, mockserver.ReservationInProgress}, kind)
}

// conflicts says that a call's key belongs to something else.
func (m *machine) conflicts(c *call) bool {
	return c.key != "" && (m.removed[c.key] != "" || (c.twin != "" && m.commands[c.key].body != c.body))
}

// effect asserts what a call did to the store, whatever its caller was told.
func (m *machine) effect(rt *rapid.T, c *call) {
	_, refused := m.fault(c)
	made := m.newTasks(c.before)
	if refused || c.exhausted || m.conflicts(c) {
		m.untouched(rt, c.before, "a refused "+string(c.kind))
		return
	}
	if c.twin != "" || !m.affordable(c.before, c.kind) {
		if len(made) != 0 {
			rt.Fatalf("I1: a repeated or unpaid %s made task %v", c.kind, made)
		}
		return
	}
	if len(made) != 1 {
		rt.Fatalf("a new %s made the tasks %v: %s", c.kind, made, m.answered(c))
	}
	c.made = made[0]
	m.texts[c.made] = c.text
	if c.key != "" {
		m.commands[c.key] = c.message
	}
}

// answered is what a call's caller was told, if anything by now.
func (m *machine) answered(c *call) string {
	select {
	case <-c.done:
		return fmt.Sprintf("%d %s %v", c.answer.status, c.answer.body, c.lost)
	default:
		return "no answer yet"
	}
}

// settle judges the answers that have come by now.
func (m *machine) settle(rt *rapid.T) {
	m.open = slices.DeleteFunc(m.open, func(c *call) bool {
		select {
		case <-c.done:
			c.cancel()
			if kind, refused := m.fault(c); c.lost == nil && !refused {
				m.judge(rt, c)
			} else if c.lost != nil && kind == "" && !c.hungUp {
				rt.Errorf("%s lost its answer for no reason: %v", c.kind, c.lost)
			}
			return true
		default:
			c.waited = true
			return false
		}
	})
}

// judge holds an answer against what its caller has to be told.
func (m *machine) judge(rt *rapid.T, c *call) {
	got := c.answer
	replayed := got.header.Get("Idempotent-Replayed") == "true"
	is := func(status int, want ...string) {
		rt.Helper()
		for _, w := range want {
			if got.status != status || !strings.Contains(string(got.body), w) {
				rt.Errorf("%s %s: %d %s, want %d %s", c.kind, c.body, got.status, got.body, status, w)
			}
		}
		if replayed != (c.twin != "" && status < 400 && !c.exhausted) {
			rt.Errorf("%s %s: marked as a replay: %v", c.kind, c.body, replayed)
		}
	}
	unpaid := c.exhausted || (c.twin == "" && c.made == "" && !m.conflicts(c))
	task := taskIn(m.srv.Stored(), c.twin+c.made)
	switch {
	case unpaid && c.kind.Wire() == protocol.FishMem:
		is(402, "INSUFFICIENT_CREDITS")
	case unpaid && m.strict:
		is(429, "limit_exceeded")
	case unpaid && c.kind == protocol.MemorySyncAdd:
		is(200, `{"status":"ok"}`)
	case unpaid:
		is(201, `"skipped"`)
	case m.conflicts(c):
		is(409, "IDEMPOTENCY_CONFLICT")
	case c.kind == protocol.Infer:
		is(202, task.ID)
	case c.kind == protocol.Verbatim:
		is(200, "results")
		if first, ok := m.verbatim[c.key]; ok && first != string(got.body) {
			rt.Errorf("I2: a verbatim replay differs:\n%s%s", first, got.body)
		} else if c.key != "" {
			m.verbatim[c.key] = string(got.body)
		}
	case c.kind == protocol.Turn && c.twin != "":
		is(201, "skipped_replay")
	case c.kind == protocol.Turn:
		is(201, "distilling")
	case got.status == 503 && c.waited:
		is(503, "send the same request again")
	case task.State == protocol.Failed:
		is(500, "EXTRACTION_FAILED")
	case c.twin != "":
		is(200, "already_ingested")
	case len(task.Result.Records) == 0:
		is(200, `"skipped"`)
	default:
		// The first one, or the next if that was forgotten meanwhile.
		is(201, `"id":`)
		if id, _ := got.fields()["id"].(float64); !slices.ContainsFunc(task.Result.Records, func(e protocol.Evidence) bool { return float64(e.Number) == id }) {
			rt.Errorf("%s: %s, and its task has the records %v", c.body, got.body, task.Result.Records)
		}
	}
}

// Check is what is true after every step.
func (m *machine) Check(rt *rapid.T) {
	s := m.srv.Stored()
	if err := protocol.Check(s); err != nil { // I1, I3, I4, I6, I7, I13
		rt.Error(err)
	}
	if found := m.watch.findings(); found != "" { // I4, I5, I8
		rt.Error(found)
	}
	if n := len(m.last.Transitions); len(s.Transitions) < n || !same(m.last.Transitions, s.Transitions[:n]) {
		rt.Error("I3: the history was written anew")
	}
	if n := len(m.last.Entries); len(s.Entries) < n || !same(m.last.Entries, s.Entries[:n]) {
		rt.Error("I7: the ledger was written anew")
	}
	m.checkEnded(rt, s)
	m.checkInferences(rt)
	for _, t := range s.Tasks {
		if t.Attempts > m.attempts {
			rt.Errorf("I6: task %s is at attempt %d of %d", t.ID, t.Attempts, m.attempts)
		}
	}
	if l := m.srv.Ledger(); !l.Balanced {
		rt.Errorf("I7: ledger %+v", l)
	}
	m.readSome(rt, s) // I11
	texts := map[string]string{}
	for _, r := range s.Records {
		texts[r.ID] = r.Text
	}
	for _, t := range s.Tasks {
		m.checkViews(rt, t, texts)
	}
	m.last, m.blind, m.redriven = s, m.blinded(), ""
	for _, text := range m.texts {
		m.counts[text] = m.reader.times(text)
	}
}

// checkEnded asserts that what SUCCEEDED stays as it is: a projection that comes
// late, fails or is repeated changes no record, no evidence and no money (I10),
// and forgetting takes nothing but the record's text.
func (m *machine) checkEnded(rt *rapid.T, s protocol.Snapshot) {
	for _, old := range m.last.Tasks {
		now := taskIn(s, old.ID)
		if old.State != protocol.Succeeded {
			continue
		}
		now.Version, now.Projection, now.NextAttempt, now.UpdatedAt = old.Version, old.Projection, old.NextAttempt, old.UpdatedAt
		if !reflect.DeepEqual(old, now) {
			rt.Errorf("I3, I10: task %s SUCCEEDED and changed", old.ID)
		}
	}
	records := map[string]protocol.Record{}
	for _, r := range s.Records {
		records[r.ID] = r
	}
	for _, old := range m.last.Records {
		now := records[old.ID]
		if now.Forgotten && !old.Forgotten {
			if now.ID != old.ID || now.TaskID != old.TaskID || now.Number != old.Number || now.Text != "" {
				rt.Errorf("record %s was forgotten and became %s", old.ID, now.ID)
			}
			continue
		}
		if now.Projected = old.Projected; !reflect.DeepEqual(old, now) {
			rt.Errorf("I10: record %s changed", old.ID)
		}
	}
}

// checkInferences asserts that nobody reads an input whose plan is frozen (I8),
// runners that stood still for longer than their lease included. Only one whose
// lease a fault took away in this step, without its knowing, may be reading now.
func (m *machine) checkInferences(rt *rapid.T) {
	open := map[string]bool{}
	for id, text := range m.texts {
		if t := taskIn(m.last, id); t.ID == "" || t.Plan == nil {
			open[text] = true
		}
	}
	for _, text := range m.texts {
		if n := m.reader.times(text); !open[text] && m.blinded() == m.blind && n > m.counts[text] {
			rt.Errorf("I8: %q was read again although its plan is frozen", text)
		}
	}
}

// checkViews asserts that the input is gone (I13), that the event says what the
// row says, and that one that ended says it for good.
func (m *machine) checkViews(rt *rapid.T, t protocol.Task, texts map[string]string) {
	if t.State == protocol.Succeeded && t.Kind != protocol.Verbatim {
		if row, err := json.Marshal(t); err != nil || strings.Contains(string(row), rawMark) {
			rt.Errorf("I13: %s SUCCEEDED and holds its input (%v)", t.ID, err)
		}
	}
	if t.Kind != protocol.Infer {
		return
	}
	got := m.now(rt, "GET", "/v1/events/"+t.ID, "", "")
	operation := m.now(rt, "GET", "/v1/operations/"+t.ID, "", "")
	if strings.Contains(string(got.body)+string(operation.body), rawMark) {
		rt.Errorf("I13: a view of %s shows its input: %s", t.ID, got.body)
	}
	view := got.fields()
	if got.status != 200 || view["status"] != string(t.State) || view["attempts"] != float64(t.Attempts) {
		rt.Errorf("event %s, the row says %s at attempt %d", got.body, t.State, t.Attempts)
	}
	for _, result := range view["results"].([]any) {
		r := result.(map[string]any)
		if id := r["id"].(string); r["memory"] != texts[id] {
			rt.Errorf("event %s says %q of %s, which says %q", t.ID, r["memory"], id, texts[id])
		}
		delete(r, "memory") // a record that is forgotten has none
	}
	delete(view, "updated_at") // a projection that heals moves it
	words := fmt.Sprint(view)
	if was, ok := m.events[t.ID]; ok && was != words && m.redriven != t.ID {
		rt.Errorf("I2, I10: event %s said\n%s\nand says\n%s", t.ID, was, words)
	}
	delete(m.events, t.ID)
	if t.State.Terminal() {
		m.events[t.ID] = words
	}
}
