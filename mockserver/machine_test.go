package mockserver_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/service"
	"github.com/memwrite/memwrite-go/mockserver"
)

// Random calls, repeats, faults and jumps of the clock, in any order. After
// each step, once nothing moves any more, everything that is stored and every
// answer is held against the invariants. The server stands in a bubble: what is
// left running when it is closed fails the test (I12).
func TestMachine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) {
			m := newMachine(rt)
			rt.Repeat(rapid.StateMachineActions(m))
			m.finish(rt)
		})
	})
}

// machine is a server, and what its callers know of it.
type machine struct {
	srv      *mockserver.Server
	watch    *watch
	reader   *reader
	strict   bool
	attempts int

	sent   []message
	open   []*call // whose answer is still out
	armed  []*mockserver.Armed
	kinds  map[*mockserver.Armed]mockserver.Kind
	before map[*mockserver.Armed]bool // strikes before the inference

	commands map[string]message // key to the first command accepted under it
	verbatim map[string]string  // key to the answer of it
	removed  map[string]string  // key to the deletion made under it
	texts    map[string]string  // task to its input
	events   map[string]string  // ended event to its last words
	history  []protocol.Transition
	last     protocol.Snapshot // at the end of the former step
	counts   map[string]int    // inferences at that time, by input
	blind    int               // leases taken away before an inference by then
	redriven string            // the event a caller started anew in this step
	unique   int
}

func newMachine(rt *rapid.T) *machine {
	m := &machine{
		watch: &watch{}, reader: &reader{read: map[string]int{}}, kinds: map[*mockserver.Armed]mockserver.Kind{}, before: map[*mockserver.Armed]bool{},
		commands: map[string]message{}, verbatim: map[string]string{}, removed: map[string]string{},
		texts: map[string]string{}, events: map[string]string{}, counts: map[string]int{},
	}
	m.strict = rapid.Bool().Draw(rt, "strict")
	m.attempts = rapid.IntRange(1, 3).Draw(rt, "attempts")
	m.srv = mockserver.Run(rt, mockserver.InProcess(), mockserver.Attempts(m.attempts),
		mockserver.Credits(rapid.SampledFrom([]int64{-1, 7}).Draw(rt, "credits")),
		mockserver.Adds(rapid.SampledFrom([]int64{-1, 4}).Draw(rt, "adds"), m.strict),
		mockserver.InvalidOutputAttempts(rapid.IntRange(0, 2).Draw(rt, "invalid")))
	if err := m.srv.Watch(func(s protocol.Store) protocol.Store { m.watch.Store = s; return m.watch }); err != nil {
		rt.Fatal(err)
	}
	m.srv.SetScript(m.reader.extract)
	m.srv.Freeze()
	synctest.Wait()
	m.last = m.srv.Stored()
	return m
}

// message is a write as it is sent, and sent again.
type message struct {
	kind             protocol.Kind
	path, body, text string
	key              string        // the Idempotency-Key
	identity         protocol.Hash // zero: it has none
}

// call is a message on its way.
type call struct {
	message
	seq    int
	cancel context.CancelFunc
	done   chan struct{}
	answer reply
	lost   error // no whole answer came

	before    protocol.Snapshot
	drained   int    // how often credits or quota had been taken away before it
	twin      string // the task that held its identity
	made      string // the task it made
	exhausted bool   // a fault took the credits away
	waited    bool   // its answer did not come in the step that sent it
	hungUp    bool
}

// send lets a call run until nothing moves any more.
func (m *machine) send(rt *rapid.T, msg message) {
	m.sent = append(m.sent, msg)
	c := m.start(msg)
	m.rest(c)
	m.effect(rt, c)
	m.settle(rt)
}

func (m *machine) start(msg message) *call {
	m.unique++
	ctx, cancel := context.WithCancel(context.Background())
	c := &call{message: msg, seq: m.unique, cancel: cancel, done: make(chan struct{}), before: m.srv.Stored(), drained: m.drained()}
	if id, ok := c.before.Identities[msg.identity]; ok && !msg.identity.IsZero() {
		// A turn is recognised for its window, and a reference or turn that
		// FAILED is free again. A key is not: its operation is redriven.
		t := taskIn(c.before, id)
		over := t.Kind == protocol.Turn && !m.srv.Now().Before(t.CreatedAt.Add(30*24*time.Hour))
		free := t.State == protocol.Failed && t.Kind.Wire() == protocol.MemorySync
		if !over && !free {
			c.twin = id
		}
	}
	go func() {
		defer close(c.done)
		c.answer, c.lost = m.request(ctx, http.MethodPost, msg.path, msg.body, msg.key, fmt.Sprint(c.seq))
	}()
	return c
}

// rest waits until nothing moves; a call without an answer stays open.
func (m *machine) rest(c *call) {
	synctest.Wait()
	c.exhausted = m.drained() > c.drained
	m.open = append(m.open, c)
}

// drained is how often a fault has taken credits or quota away.
func (m *machine) drained() int {
	return m.fired(mockserver.ExhaustCredits, mockserver.ExhaustQuota)
}

// request is one exchange with the key for its path.
func (m *machine) request(ctx context.Context, method, path, body, key, seq string) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, method, m.srv.URL+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("X-Machine-Seq", seq)
	req.Header.Set("Authorization", "Bearer "+m.srv.FishMemKey)
	if strings.HasPrefix(path, "/memory/") || strings.HasPrefix(path, "/v1/memory/") {
		req.Header.Del("Authorization")
		req.Header.Set("X-API-Key", m.srv.MemorySyncKey)
		req.Header.Set("X-End-User-ID", "acme")
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := m.srv.RoundTripper().RoundTrip(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header, out}, err
}

// now is a request that is answered in this step.
func (m *machine) now(rt *rapid.T, method, path, body, key string) reply {
	got, err := m.request(context.Background(), method, path, body, key, "")
	if err != nil {
		rt.Fatalf("%s %s: %v", method, path, err)
	}
	return got
}

func (m *machine) fired(kinds ...mockserver.Kind) int {
	n := 0
	for _, a := range m.armed {
		for _, k := range kinds {
			if m.kinds[a] == k {
				n += a.Fired()
			}
		}
	}
	return n
}

// finish lets everything heal: every task comes to its end, every caller gets
// an answer, and no reservation is left.
func (m *machine) finish(rt *rapid.T) {
	m.Disarm(rt)
	for range 100 {
		m.Check(rt)
		m.jump(rt, time.Second)
	}
	for n := -1; n != len(m.history); {
		n = len(m.history)
		m.Check(rt)
	}
	if len(m.history) != len(m.last.Transitions) {
		rt.Errorf("I11: a slow reader saw %d transitions of %d", len(m.history), len(m.last.Transitions))
	}
	for _, t := range m.last.Tasks {
		if !t.State.Terminal() || t.Projection == protocol.ProjectionPending {
			rt.Errorf("task %s is left %s, its projection %s", t.ID, t.State, t.Projection)
		}
	}
	if l := m.srv.Ledger(); l.Open != 0 || !l.Balanced || len(m.open) != 0 {
		rt.Errorf("%d calls are open, ledger %+v", len(m.open), l)
	}
	m.srv.Close()
}

// The names and bodies the callers draw from are few, so that they meet.

func (m *machine) input(rt *rapid.T, name string) string {
	return fmt.Sprintf("%s %s about %s", rawMark, name, rapid.SampledFrom([]string{"tea", "both", "nothing"}).Draw(rt, "about"))
}

func (m *machine) Add(rt *rapid.T) {
	ref := rapid.SampledFrom([]string{"r0", "r1", "r2", ""}).Draw(rt, "ref")
	if ref == "" {
		m.unique++
		text := m.input(rt, fmt.Sprint("unnamed ", m.unique))
		m.send(rt, message{kind: protocol.MemorySyncAdd, path: "/memory/add", text: text, body: fmt.Sprintf(`{"text":%q}`, text)})
		return
	}
	text := m.input(rt, ref)
	m.send(rt, message{kind: protocol.MemorySyncAdd, path: "/memory/add", text: text, body: fmt.Sprintf(`{"text":%q,"client_ref":%q}`, text, ref),
		identity: protocol.ClientRef(m.srv.Workspace, m.srv.Workspace, service.DefaultProject, "acme", ref)})
}

func (m *machine) Turn(rt *rapid.T) {
	at := rapid.SampledFrom([]string{"2026-06-16T09:30:00Z", "2026-06-16T09:30:00+00:00"}).Draw(rt, "at")
	text := m.input(rt, "a turn at "+at)
	m.send(rt, message{kind: protocol.Turn, path: "/v1/memory/add_turn", text: text,
		body:     fmt.Sprintf(`{"tenant_id":%q,"user_id":"acme","role":"user","text":%q,"occurred_at":%q}`, m.srv.Workspace, text, at),
		identity: protocol.ReplayKey(m.srv.Workspace, m.srv.Workspace, "acme", "", at, text)})
}
