package mockserver

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/memwrite/memwrite-go/internal/service"
)

// Identity is what makes a request recognisable when it is sent again. At most
// one of its three forms is set.
type Identity struct {
	ClientRef      string `json:"client_ref,omitempty"`
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	// Turn is the text of an add_turn call; with TurnUser, TurnSpeaker and
	// OccurredAt it is the replay key.
	Turn        string `json:"turn,omitempty"`
	TurnTenant  string `json:"turn_tenant,omitempty"`
	TurnUser    string `json:"turn_user,omitempty"`
	TurnSpeaker string `json:"turn_speaker,omitempty"`
	OccurredAt  string `json:"occurred_at,omitempty"`
}

// String is the identity's one value: the reference, the key or the turn.
func (i Identity) String() string {
	switch {
	case i.ClientRef != "":
		return i.ClientRef
	case i.IdempotencyKey != "":
		return i.IdempotencyKey
	}
	return i.Turn
}

// Request is one request as it reached the server, and what came of it. Auth
// headers are not kept.
type Request struct {
	Seq        int         `json:"seq"`
	At         time.Time   `json:"at"` // on the server's clock
	Method     string      `json:"method"`
	Path       string      `json:"path"` // escaped, as sent, without the query
	Query      string      `json:"query,omitempty"`
	Header     http.Header `json:"header"`
	Body       []byte      `json:"body,omitempty"`
	Identity   Identity    `json:"identity"`
	Status     int         `json:"status"` // what the service answered; 0 when it never saw the request
	AnswerBody []byte      `json:"answer_body,omitempty"`
	Fault      Kind        `json:"fault,omitempty"` // the fault that struck it
	Dropped    bool        `json:"dropped"`         // the caller got no whole answer
}

// Route is the request's "METHOD /path".
func (r Request) Route() string { return r.Method + " " + r.Path }

func (r Request) line() string {
	out := fmt.Sprintf("#%d %s", r.Seq, r.Route())
	if id := r.Identity.String(); id != "" {
		out += fmt.Sprintf(" [%s]", id)
	}
	if r.Dropped {
		return fmt.Sprintf("%s -> %d, lost (%s)", out, r.Status, r.Fault)
	}
	if r.Fault != "" {
		return fmt.Sprintf("%s -> %d (%s)", out, r.Status, r.Fault)
	}
	return fmt.Sprintf("%s -> %d", out, r.Status)
}

// maxJournal bounds what a long-lived server keeps; the oldest go first.
const maxJournal = 10_000

// journal is a ring of the newest requests.
type journal struct {
	mu      sync.Mutex
	seq     int
	entries []*entry
	next    int // where the ring goes on once it is full
}

// entry is a request as the journal keeps it, which is small; the Request is made
// of it when somebody asks.
type entry struct {
	seq                 int
	at                  time.Time
	method, path, query string
	header              keptHeader
	body                []byte
	identity            *Identity // nil until somebody asks
	status              int
	answer              []byte
	fault               Kind
	dropped             bool
}

func (e *entry) route() string { return e.method + " " + e.path }

// keptHeader is a header in one piece: names and values in turn, each ended by a
// NUL, which no header holds.
type keptHeader string

// keepHeader leaves the auth headers out.
func keepHeader(h http.Header) keptHeader {
	out := make([]byte, 0, 512)
	for name, values := range h {
		if name == "Authorization" || name == "X-Api-Key" {
			continue
		}
		for _, v := range values {
			out = append(append(append(append(out, name...), 0), v...), 0)
		}
	}
	return keptHeader(out)
}

func (k keptHeader) header() http.Header {
	out := http.Header{}
	for rest := string(k); rest != ""; {
		var name, value string
		name, rest, _ = strings.Cut(rest, "\x00")
		value, rest, _ = strings.Cut(rest, "\x00")
		out[name] = append(out[name], value)
	}
	return out
}

// open notes a request when it arrives, so that one that is never answered is
// in the journal too.
func (j *journal) open(e *entry) *entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.seq++
	e.seq = j.seq
	if len(j.entries) < maxJournal {
		j.entries = append(j.entries, e)
		return e
	}
	j.entries[j.next] = e
	j.next = (j.next + 1) % maxJournal
	return e
}

// change edits an open entry.
func (j *journal) change(edit func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	edit()
}

// identity is what makes an entry recognisable.
func (j *journal) identity(e *entry) Identity {
	j.mu.Lock()
	defer j.mu.Unlock()
	return e.identify()
}

// struck is the entry as a strike names it.
func (j *journal) struck(e *entry) func() Strike {
	return func() Strike { return Strike{Request: e.seq, Key: j.identity(e).String()} }
}

// identify reads the identity off a request, once. A body that is no JSON has
// none.
func (e *entry) identify() Identity {
	if e.identity == nil {
		id := Identity(service.SentWith(e.header.header(), e.path, e.body))
		e.identity = &id
	}
	return *e.identity
}

func (e *entry) request() Request {
	return Request{
		Seq: e.seq, At: e.at, Method: e.method, Path: e.path, Query: e.query, Header: e.header.header(), Body: slices.Clone(e.body),
		Identity: e.identify(), Status: e.status, AnswerBody: slices.Clone(e.answer), Fault: e.fault, Dropped: e.dropped,
	}
}

func (j *journal) all() []Request { return j.latest(maxJournal) }

// latest is the newest n requests, oldest first.
func (j *journal) latest(n int) []Request {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := len(j.entries)
	out := make([]Request, min(n, all))
	for i := range out {
		out[i] = j.entries[(j.next+all-len(out)+i)%all].request()
	}
	return out
}

func (j *journal) clear() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries, j.next = nil, 0
}
