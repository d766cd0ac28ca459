package protocol

import (
	"encoding/hex"
	"slices"
	"strconv"
)

// Fact is one thing an extractor found.
type Fact struct {
	Text string
	Type string // fact, preference, …: an open set
	Key  string // what it is about; facts of one type and key are compared
	// Replaces: an end user has one fact of this type and key, so that this one
	// takes the place of an older one that says something else.
	Replaces bool
}

// Judgment is what the near-duplicate filter made of a fact. The zero value
// keeps it beside everything that is there.
type Judgment struct {
	Existing   *Record  // says the fact already, so that nothing is written
	Supersedes []string // ids of the records whose place the fact takes
}

// Plan is what a task will write, frozen before anything is written. Every
// later attempt replays it; no inference runs again.
type Plan struct {
	// Hash covers ids and mutations and never changes, redaction included.
	Hash      Hash
	Mutations []Mutation
	// Evidence is what the result will say, in the order of the facts:
	// the new records and the existing ones that made a fact redundant.
	Evidence []Evidence
}

// Mutation adds one record, and takes away those it supersedes.
type Mutation struct {
	RecordID   string
	Number     int64
	Fact       Fact
	Supersedes []string
}

// newPlan freezes facts under ids, each as it was judged. first is the first of
// the numbers allotted for MemorySync, ignored on FishMem.
func newPlan(t *Task, facts []Fact, judged []Judgment, first int64) *Plan {
	p := &Plan{}
	var room [8]string // for one fact, so that nothing is allocated
	parts := room[:0]
	for i, f := range facts {
		if r := judged[i].Existing; r != nil {
			p.Evidence = append(p.Evidence, Evidence{ID: r.ID, Number: r.Number, Existing: true})
			continue
		}
		m := Mutation{RecordID: recordID(t.ID, i), Fact: f, Supersedes: judged[i].Supersedes}
		if t.Kind.Wire() == MemorySync {
			m.Number = first
			first++
		}
		p.Mutations = append(p.Mutations, m)
		p.Evidence = append(p.Evidence, Evidence{ID: m.RecordID, Number: m.Number})
		parts = append(parts, m.RecordID, strconv.FormatInt(m.Number, 10), f.Type, f.Key, f.Text)
		parts = append(parts, m.Supersedes...)
	}
	for _, e := range p.Evidence {
		parts = append(parts, e.ID)
	}
	p.Hash = hashOf("plan", parts...)
	return p
}

// redacted keeps the ids and the hash.
func (p *Plan) redacted() *Plan {
	if p == nil {
		return nil
	}
	out := &Plan{Hash: p.Hash, Mutations: make([]Mutation, len(p.Mutations))}
	for i, m := range p.Mutations {
		out.Mutations[i] = Mutation{RecordID: m.RecordID, Number: m.Number, Supersedes: m.Supersedes}
	}
	return out
}

// told says that a plan still holds what the facts say.
func (p *Plan) told() bool {
	return p != nil && slices.ContainsFunc(p.Mutations, func(m Mutation) bool { return m.Fact != Fact{} })
}

// superseded is whose place the plan's records take.
func (p *Plan) superseded() []Supersession {
	var out []Supersession
	for _, m := range p.Mutations {
		for _, id := range m.Supersedes {
			out = append(out, Supersession{ID: id, By: m.RecordID})
		}
	}
	return out
}

// recordID is derived from the task, so that a plan made again after a crash
// that lost it names the same records. It has the form of a UUID (RFC 9562,
// version 8).
func recordID(task string, i int) string {
	h := hashOf("record", task, strconv.Itoa(i))
	b := h[:16]
	b[6] = b[6]&0x0f | 0x80
	b[8] = b[8]&0x3f | 0x80
	out := make([]byte, 0, 36)
	for _, n := range [...][2]int{{0, 4}, {4, 6}, {6, 8}, {8, 10}, {10, 16}} {
		if n[0] > 0 {
			out = append(out, '-')
		}
		out = hex.AppendEncode(out, b[n[0]:n[1]])
	}
	return string(out)
}
