package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/memwrite/memwrite-go/internal/sched"
)

// Texts that each hold one fact, of different things.
const (
	textReleases = "My team ships releases every Thursday."
	textOffice   = "Our office moved from Bristol to Cardiff."
	textFiller   = "ok thanks"
)

// broken ends a check whose promise was not kept.
type broken struct{ why string }

// impossible ends a check that this server gives no way to make.
type impossible struct{ why string }

// probe is one check under way: the calls it makes, and the names it makes them
// under. A check that is not kept ends by panic, which the suite recovers.
type probe struct {
	s     *suite
	ctx   context.Context
	name  string
	calls atomic.Int64
	polls atomic.Int64

	mu     sync.Mutex
	names  int
	users  []tidy
	faults []int
	failed []string // events that ended FAILED and would leave the server degraded
	before charge   // of the account, for books that know no keys
}

// tidy is an end user whose memories are deleted at the end.
type tidy struct {
	fishMem bool
	user    string
}

func (p *probe) fail(format string, args ...any) {
	panic(broken{fmt.Sprintf(format, args...)})
}

// want fails the check unless ok.
func (p *probe) want(ok bool, format string, args ...any) {
	if !ok {
		p.fail(format, args...)
	}
}

// id is a new name, good as a key, a client_ref and a user.
func (p *probe) id() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.names++
	return "conform-" + p.s.run + "-" + p.name + "-" + strconv.Itoa(p.names)
}

// memorySyncUser is a new end user whose memories are deleted at the end.
func (p *probe) memorySyncUser() string {
	user := p.id()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users = append(p.users, tidy{user: user})
	return user
}

// fishMemUser is the same on the other wire.
func (p *probe) fishMemUser() string {
	user := p.id()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users = append(p.users, tidy{fishMem: true, user: user})
	return user
}

// fault arms something for one identity.
func (p *probe) fault(f fault) (number int) {
	number, err := p.s.control.arm(p.ctx, f)
	if err != nil {
		panic(impossible{err.Error()})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, number)
	return number
}

func (p *probe) do(c *caller, r request) answer {
	if r.poll {
		p.polls.Add(1)
	} else {
		p.calls.Add(1)
	}
	return c.do(p.ctx, r)
}

// ms calls MemorySync for an end user.
func (p *probe) ms(method, path, user, body string) answer {
	return p.do(p.s.memorySync, request{method: method, path: path, body: body, header: map[string]string{"X-End-User-ID": user}})
}

// fm calls FishMem; key "" sends none.
func (p *probe) fm(method, path, key, body string) answer {
	r := request{method: method, path: path, body: body}
	if key != "" {
		r.header = map[string]string{"Idempotency-Key": key}
	}
	return p.do(p.s.fishMem, r)
}

// object is a JSON object from names and values.
func object(pairs ...any) string {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	b, _ := json.Marshal(m)
	return string(b)
}

// add writes a text under a reference, as the protocol says a client does: an
// answer that the work still runs is followed by the same request.
func (p *probe) add(user, ref, text string) answer {
	return p.addTo(p.s.memorySync, user, ref, text)
}

func (p *probe) addTo(c *caller, user, ref, text string) answer {
	r := request{
		method: http.MethodPost, path: "/memory/add", body: object("text", text, "client_ref", ref),
		header: map[string]string{"X-End-User-ID": user},
	}
	a := p.do(c, r)
	for r.poll = true; a.status == http.StatusServiceUnavailable && p.waiting(); {
		p.nap(time.Second)
		a = p.do(c, r)
	}
	return a
}

// turn sends one turn.
func (p *probe) turn(user, role, speaker, occurredAt, text string) answer {
	return p.ms(http.MethodPost, "/v1/memory/add_turn", "", p.turnBody(user, role, speaker, occurredAt, text))
}

func (p *probe) turnBody(user, role, speaker, occurredAt, text string) string {
	return object("tenant_id", p.s.tenant, "user_id", user, "role", role, "speaker", speaker, "occurred_at", occurredAt, "text", text)
}

// stored counts the memories of an end user on MemorySync.
func (p *probe) stored(user string) int {
	a := p.ms(http.MethodGet, p.listPath(user), "", "")
	p.want(a.ok(), "the list of an end user's memories answers %s", a)
	return len(a.list("memories"))
}

func (p *probe) listPath(user string) string {
	return "/v1/memory/" + url.PathEscape(p.s.tenant) + "/" + url.PathEscape(user) + "/list?limit=0"
}

// infer accepts an inferred write and gives its event id.
func (p *probe) infer(user, key, content string) string {
	return p.event(p.fm(http.MethodPost, "/v1/memories", key, inferBody(user, content)))
}

func inferBody(user, content string) string { return object("user_id", user, "content", content) }

// event is the id in a receipt.
func (p *probe) event(a answer) string {
	id := a.text("event_id")
	p.want(a.ok() && id != "", "an inferred write is answered %s, not with a receipt that names an event", a)
	return id
}

// look reads an event once.
func (p *probe) look(id string) answer {
	return p.fm(http.MethodGet, "/v1/events/"+url.PathEscape(id), "", "")
}

// ended waits until an event ends and gives it.
func (p *probe) ended(id string) answer {
	return p.until(id, ended)
}

// succeeded waits until an event ends, which has to be well.
func (p *probe) succeeded(id string) answer {
	a := p.ended(id)
	p.want(a.text("status") == "SUCCEEDED", "the event ended %s: %s", a.text("status"), a)
	return a
}

// until polls an event until done says so, or patience ends.
func (p *probe) until(id string, done func(answer) bool) answer {
	r := request{method: http.MethodGet, path: "/v1/events/" + url.PathEscape(id), poll: true}
	if p.s.holds {
		r.header = map[string]string{"Prefer": "wait=5"}
	}
	gap := 20 * time.Millisecond
	for {
		a := p.do(p.s.fishMem, r)
		p.want(a.status == http.StatusOK, "the event of a receipt answers %s", a)
		if done(a) {
			return a
		}
		p.want(p.waiting(), "the event is still %s after %s", a.text("status"), p.s.cfg.Patience)
		p.nap(gap)
		gap = min(gap*2, time.Second)
	}
}

// settles polls a MemorySync user until it has so many memories.
func (p *probe) settles(user string, n int) {
	r := request{method: http.MethodGet, path: p.listPath(user), poll: true}
	gap := 20 * time.Millisecond
	for {
		a := p.do(p.s.memorySync, r)
		p.want(a.ok(), "the list of an end user's memories answers %s", a)
		if len(a.list("memories")) >= n {
			return
		}
		p.want(p.waiting(), "%d of %d memories are there after %s", len(a.list("memories")), n, p.s.cfg.Patience)
		p.nap(gap)
		gap = min(gap*2, time.Second)
	}
}

// memories counts what FishMem holds of a user.
func (p *probe) memories(user string) int {
	a := p.fm(http.MethodGet, "/v1/memories?limit=100&user_id="+url.QueryEscape(user), "", "")
	p.want(a.ok(), "the list of a user's memories answers %s", a)
	return len(a.list("results"))
}

// waiting says that there is time left.
func (p *probe) waiting() bool { return p.ctx.Err() == nil }

func (p *probe) nap(d time.Duration) { _ = sched.Sleep(p.ctx, sched.Real(), d) }

// together runs f n times at once and waits for all.
func (p *probe) together(n int, f func(i int) answer) []answer {
	out := make([]answer, n)
	var all sync.WaitGroup
	for i := range n {
		all.Add(1)
		go func() {
			defer all.Done()
			out[i] = f(i)
		}()
	}
	all.Wait()
	return out
}

// tidyUp takes back what the check did, whatever became of it: its faults, its
// FAILED events, which would leave the server's health degraded, and its
// memories.
func (p *probe) tidyUp() {
	for _, n := range p.faults {
		p.s.control.disarm(p.ctx, n)
	}
	for _, id := range p.failed {
		a := p.fm(http.MethodPost, "/v1/operations/"+url.PathEscape(id)+"/retry", "", "")
		for i := 0; a.ok() && i < 100 && p.waiting(); i++ {
			e := p.do(p.s.fishMem, request{method: http.MethodGet, path: "/v1/events/" + url.PathEscape(id), poll: true})
			if s := e.text("status"); !e.ok() || s == "SUCCEEDED" || s == "FAILED" {
				break
			}
			p.nap(20 * time.Millisecond)
		}
	}
	for _, u := range p.users {
		if u.fishMem {
			p.fm(http.MethodDelete, "/v1/memories?user_id="+url.QueryEscape(u.user), u.user+"-tidy", "")
			continue
		}
		p.forgetAll(u.user)
	}
}

// forgetAll forgets every memory of a MemorySync user.
func (p *probe) forgetAll(user string) {
	a := p.ms(http.MethodGet, p.listPath(user), "", "")
	var ids []string
	for _, m := range a.list("memories") {
		if fields, ok := m.(map[string]any); ok {
			ids = append(ids, str(fields["memory_id"]))
		}
	}
	if len(ids) > 0 {
		p.ms(http.MethodDelete, "/memory/forget", user, object("memory_ids", numbers(ids)))
	}
}

// numbers turns "m_7" into 7, the form the forget route documents.
func numbers(ids []string) []json.Number {
	out := make([]json.Number, 0, len(ids))
	for _, id := range ids {
		if len(id) > 2 && id[:2] == "m_" {
			id = id[2:]
		}
		if _, err := strconv.ParseInt(id, 10, 64); err == nil {
			out = append(out, json.Number(id))
		}
	}
	return out
}
