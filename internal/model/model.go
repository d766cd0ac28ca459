// Package model is the protocol again, as plainly as it can be said: one
// caller at a time, no lease, no store, no wire, and an extraction that ends at
// once. It predicts what a server has to answer; a random walk holds the HTTP
// surface against it. It shares no code with the server.
package model

import (
	"slices"
	"time"
)

// window is how long a turn is recognised, and how long a failed write keeps
// what a redrive needs.
const window = 30 * 24 * time.Hour

// Limits are what a workspace allows.
type Limits struct {
	Attempts        int
	InvalidAttempts int
	Credits, Adds   int64 // below 0: no bound
	Strict          bool
}

// Model is a workspace.
type Model struct {
	Limits  Limits
	Now     time.Time
	Writes  []*Write // in the order they were accepted
	Records []*Record

	keys    map[string]*Write // by Idempotency-Key, for good
	refs    map[[2]string]*Write
	turns   map[[4]string]*Write
	credits *Account
	adds    map[string]*Account // by month
}

// New makes an empty workspace.
func New(l Limits, now time.Time) *Model {
	return &Model{Limits: l, Now: now, keys: map[string]*Write{}, refs: map[[2]string]*Write{}, turns: map[[4]string]*Write{}, adds: map[string]*Account{}}
}

// Submit accepts a command, or finds the write that has its name. fails is what
// will go wrong in its attempts, if it is made now.
func (m *Model) Submit(c Command, fails []string) Answer {
	if w := m.named(c); w != nil {
		if (c.Kind == Infer || c.Kind == Verbatim || c.Kind == Delete) && !same(w.Command, c) {
			return Answer{Code: Conflict}
		}
		return Answer{Write: w, Replayed: true}
	}
	if c.Kind == Delete {
		return m.delete(c)
	}
	w := &Write{Command: c, State: Pending, Fails: fails, accepted: m.Now}
	w.account, w.price = m.Adds(), 1
	switch c.Kind {
	case Infer:
		w.account, w.price = m.Credits(), 2
	case Verbatim:
		w.account = m.Credits()
	}
	if w.account.Available < w.price {
		return Answer{Code: m.short(c.Kind)}
	}
	m.reserve(w)
	m.name(w)
	m.Writes = append(m.Writes, w)
	if c.Kind == Verbatim {
		w.Fails, w.Facts = nil, []string{c.Text}
		m.attempt(w)
	}
	return Answer{Write: w, Made: true}
}

// named is the write that has a command's name already. A reference and a turn
// are free again when what they made FAILED; a turn after its window too.
func (m *Model) named(c Command) *Write {
	var w *Write
	switch c.Kind {
	case Add:
		w = m.refs[[2]string{c.User, c.Name}]
	case Turn:
		if w = m.turns[turn(c)]; w != nil && m.Now.Sub(w.accepted) >= window {
			w = nil
		}
	default:
		return m.keys[c.Name]
	}
	if w != nil && w.State == Failed {
		return nil
	}
	return w
}

func (m *Model) name(w *Write) {
	switch {
	case w.Kind == Turn:
		m.turns[turn(w.Command)] = w
	case w.Name == "":
	case w.Kind == Add:
		m.refs[[2]string{w.User, w.Name}] = w
	default:
		m.keys[w.Name] = w
	}
}

func turn(c Command) [4]string { return [4]string{c.User, c.Speaker, c.At, c.Text} }

func same(a, b Command) bool {
	return a.Kind == b.Kind && a.User == b.User && a.Text == b.Text && a.Target == b.Target
}

// delete takes one record away. A deletion that finds nothing takes no name.
func (m *Model) delete(c Command) Answer {
	if c.Target == nil || c.Target.Forgotten {
		return Answer{Code: Missing}
	}
	c.Target.Forgotten = true
	w := &Write{Command: c, State: Succeeded}
	m.name(w)
	return Answer{Write: w, Made: true}
}

// Forget takes MemorySync records away and says how many were there.
func (m *Model) Forget(rs ...*Record) int {
	n := 0
	for _, r := range rs {
		if !r.Forgotten {
			r.Forgotten = true
			n++
		}
	}
	return n
}

// Redrive runs an inferred write that FAILED, or waits, anew.
func (m *Model) Redrive(w *Write) Answer {
	switch {
	case w == nil || w.Kind != Infer || w.State == Succeeded,
		w.State == Failed && m.Now.Sub(w.ended) >= window:
		return Answer{Code: Final}
	case w.State == Pending:
		return Answer{Write: w}
	case w.State == Failed:
		if w.account = m.Credits(); w.account.Available < w.price {
			return Answer{Code: NoCredits}
		}
		m.reserve(w)
	}
	w.State, w.Attempts, w.invalid, w.Code = Pending, 0, 0, ""
	return Answer{Write: w}
}

// Settle lets every write that nothing keeps back have its attempt.
func (m *Model) Settle() {
	for _, w := range m.Writes {
		if w.State == Pending {
			m.attempt(w)
		}
	}
}

// Tick passes more time than any back-off: every write that waits has one more
// attempt.
func (m *Model) Tick(d time.Duration) {
	m.Now = m.Now.Add(d)
	for _, w := range m.Writes {
		if w.State == Pending || w.State == Retrying {
			m.attempt(w)
		}
	}
}

// attempt is one run of a write: it stores everything, once, or nothing.
func (m *Model) attempt(w *Write) {
	w.Attempts++
	if len(w.Fails) > 0 {
		w.Code, w.Fails = w.Fails[0], w.Fails[1:]
		again := w.Attempts < m.Limits.Attempts
		if w.Code == Invalid {
			w.invalid++
			again = again && w.invalid < m.Limits.InvalidAttempts
		}
		if w.State = Retrying; !again {
			w.State, w.ended = Failed, m.Now
			w.account.Reserved -= w.price
			w.account.Available += w.price
			w.account.Released += w.price
		}
		return
	}
	for i, text := range w.Facts {
		if slices.Contains(w.Facts[:i], text) && w.Kind != Verbatim {
			continue // said twice in one input
		}
		if r := m.known(w, text); r != nil {
			w.Records = append(w.Records, r)
			continue
		}
		r := &Record{Write: w, User: w.User, Text: text}
		m.Records = append(m.Records, r)
		w.Records = append(w.Records, r)
	}
	w.State, w.Code, w.ended = Succeeded, "", m.Now
	w.account.Reserved -= w.price
	w.account.Settled += w.price
}

// known is the record of the same end user that says a fact already. FishMem's
// keys each are an intent of their own and are not filtered.
func (m *Model) known(w *Write, text string) *Record {
	if w.Kind != Add && w.Kind != Turn {
		return nil
	}
	for _, r := range m.Records {
		if r.User == w.User && r.Text == text && !r.Forgotten && (r.Write.Kind == Add || r.Write.Kind == Turn) && r.Write != w {
			return r
		}
	}
	return nil
}

// Events is the inferred writes, newest first; state "" is all.
func (m *Model) Events(state string) []*Write {
	var out []*Write
	for _, w := range slices.Backward(m.Writes) {
		if w.Kind == Infer && (state == "" || w.State == state) {
			out = append(out, w)
		}
	}
	return out
}
