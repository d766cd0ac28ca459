package model_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/memwrite/memwrite-go/internal/model"
	"github.com/memwrite/memwrite-go/mockserver"
)

// A random walk over the HTTP surface: each answer is what the model predicts.
func TestServerAnswersAsTheModelPredicts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) {
			m := newMachine(rt)
			rt.Repeat(rapid.StateMachineActions(m))
			m.srv.Close()
		})
	})
}

// tick is more than any back-off of the server.
const tick = 300 * time.Millisecond

// machine walks on a server and its model at once.
type machine struct {
	srv    *mockserver.Server
	model  *model.Model
	events map[string]*model.Write  // by event id, as the server named them
	ids    map[*model.Write]string  // and back
	memory map[string]*model.Record // by the id of either wire
	names  map[*model.Record]string
	armed  map[*model.Write][]*mockserver.Armed
}

func newMachine(rt *rapid.T) *machine {
	l := model.Limits{
		Attempts:        rapid.IntRange(1, 3).Draw(rt, "attempts"),
		InvalidAttempts: rapid.IntRange(0, 2).Draw(rt, "invalid"),
		Credits:         rapid.SampledFrom([]int64{-1, 9}).Draw(rt, "credits"),
		Adds:            rapid.SampledFrom([]int64{-1, 5}).Draw(rt, "adds"),
		Strict:          rapid.Bool().Draw(rt, "strict"),
	}
	m := &machine{events: map[string]*model.Write{}, ids: map[*model.Write]string{}, memory: map[string]*model.Record{}, names: map[*model.Record]string{}, armed: map[*model.Write][]*mockserver.Armed{}}
	m.srv = mockserver.Run(rt, mockserver.InProcess(), mockserver.Attempts(l.Attempts), mockserver.Credits(l.Credits),
		mockserver.Adds(l.Adds, l.Strict), mockserver.InvalidOutputAttempts(l.InvalidAttempts))
	m.srv.SetScript(func(text string) ([]mockserver.Fact, bool) {
		var out []mockserver.Fact
		for _, f := range facts(text) {
			out = append(out, mockserver.Fact{Text: f})
		}
		return out, true
	})
	m.srv.Freeze()
	synctest.Wait()
	m.model = model.New(l, m.srv.Now())
	return m
}

// facts is what an extraction finds: the words of the text behind the colon.
func facts(text string) []string {
	_, list, _ := strings.Cut(text, ": ")
	return strings.Fields(list)
}

var inputs = []string{"likes: tea", "likes: tea rowing", "likes: rowing tea rowing", "says nothing: ", "plays: chess"}

func user(rt *rapid.T) string { return rapid.SampledFrom([]string{"sam", "kim"}).Draw(rt, "user") }

// name is drawn from few, so that commands meet.
func name(rt *rapid.T) string { return rapid.SampledFrom([]string{"n1", "n2", "n3"}).Draw(rt, "name") }

func text(rt *rapid.T) string { return rapid.SampledFrom(inputs).Draw(rt, "text") }

// reply is an answer of the server.
type reply struct {
	status int
	header http.Header
	body   []byte
	fields map[string]any
}

func (m *machine) call(rt *rapid.T, method, path, endUser, key, body string) *reply {
	ch := m.start(method, path, endUser, key, body)
	synctest.Wait()
	for range 50 {
		select {
		case r := <-ch:
			return r
		default: // it waits for its task
			m.Tick(rt)
		}
	}
	rt.Fatalf("%s %s is not answered", method, path)
	return nil
}

func (m *machine) start(method, path, endUser, key, body string) <-chan *reply {
	ch := make(chan *reply, 1)
	req, err := http.NewRequestWithContext(context.Background(), method, m.srv.URL+path, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	if strings.HasPrefix(path, "/memory/") || strings.HasPrefix(path, "/v1/memory/") {
		req.Header.Set("X-API-Key", m.srv.MemorySyncKey)
		req.Header.Set("X-End-User-ID", endUser)
	} else {
		req.Header.Set("Authorization", "Bearer "+m.srv.FishMemKey)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	go func() {
		res, err := m.srv.RoundTripper().RoundTrip(req)
		if err != nil {
			ch <- &reply{body: []byte(err.Error())}
			return
		}
		defer res.Body.Close()
		out, _ := io.ReadAll(res.Body)
		r := &reply{status: res.StatusCode, header: res.Header, body: out}
		_ = json.Unmarshal(out, &r.fields)
		ch <- r
	}()
	return ch
}

func (r *reply) text(field string) string { s, _ := r.fields[field].(string); return s }

// expect holds the part of an answer that every write has against the model's.
func (m *machine) expect(rt *rapid.T, got *reply, want model.Answer, good int) bool {
	rt.Helper()
	status := map[string]int{"": good, model.NoCredits: 402, model.Refused: 429, model.Conflict: 409, model.Missing: 404, model.Final: 404}[want.Code]
	if want.Code == model.Dropped {
		status = good
	}
	if got.status != status || (want.Code != "" && want.Code != model.Dropped && !strings.Contains(string(got.body), want.Code)) {
		rt.Fatalf("answered %d %s, predicted %d %q", got.status, got.body, status, want.Code)
	}
	if replayed := got.header.Get("Idempotent-Replayed") == "true"; replayed != (want.Replayed && want.Code == "") {
		rt.Fatalf("marked as a replay: %v, predicted %v: %s", replayed, want.Replayed, got.body)
	}
	return want.Code == ""
}

// fails draws what goes wrong in the attempts of a write, and arms it if the
// write is going to be made.
func (m *machine) fails(rt *rapid.T) []string {
	return rapid.SliceOfN(rapid.SampledFrom([]string{model.Down, model.Down, model.Invalid}), 0, 3).Draw(rt, "fails")
}

func (m *machine) arm(key string, w *model.Write) {
	for _, f := range w.Fails {
		kind := mockserver.ProviderDown
		if f == model.Invalid {
			kind = mockserver.ProviderInvalid
		}
		m.armed[w] = append(m.armed[w], m.srv.Arm(mockserver.Fault{Kind: kind, Key: key}))
	}
}

// disarm takes back what was armed for writes that have ended before it struck.
func (m *machine) disarm() {
	for w, armed := range m.armed {
		if w.State == model.Succeeded || w.State == model.Failed {
			for _, a := range armed[len(armed)-len(w.Fails):] {
				a.Disarm()
			}
			w.Fails = nil
			delete(m.armed, w)
		}
	}
}

// event binds a write to the id the server gave it, once.
func (m *machine) event(rt *rapid.T, id string, w *model.Write) {
	rt.Helper()
	if m.ids[w] == "" && m.events[id] == nil {
		m.ids[w], m.events[id] = id, w
	}
	if m.ids[w] != id || m.events[id] != w {
		rt.Fatalf("the event of %s %q is %s, and was %s", w.Kind, w.Name, id, m.ids[w])
	}
}

// record binds a record to an id, once.
func (m *machine) record(rt *rapid.T, id string, r *model.Record) {
	rt.Helper()
	if m.names[r] == "" && m.memory[id] == nil {
		m.names[r], m.memory[id] = id, r
	}
	if m.names[r] != id {
		rt.Fatalf("the record of %q is %s, and was %s", r.Text, id, m.names[r])
	}
}

// results binds the records that an answer lists, in the order of the facts.
func (m *machine) results(rt *rapid.T, list any, w *model.Write) {
	rt.Helper()
	items, _ := list.([]any)
	if len(items) != len(w.Records) {
		rt.Fatalf("%d results, predicted %d", len(items), len(w.Records))
	}
	for i, item := range items {
		fields, _ := item.(map[string]any)
		m.record(rt, fmt.Sprint(fields["id"]), w.Records[i])
		if text := fmt.Sprint(fields["memory"]); text != w.Records[i].Text && !w.Records[i].Forgotten {
			rt.Fatalf("result %q, predicted %q", text, w.Records[i].Text)
		}
	}
}

// Tick passes a back-off on both sides.
func (m *machine) Tick(*rapid.T) { m.advance(tick) }

// Month passes what is kept of turns and of failed writes.
func (m *machine) Month(*rapid.T) { m.advance(31 * 24 * time.Hour) }

func (m *machine) advance(d time.Duration) {
	m.srv.Advance(d)
	synctest.Wait()
	m.model.Tick(d)
	m.disarm()
}
