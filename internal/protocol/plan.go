package protocol

import (
	"encoding/hex"
	"strconv"
)

// Fact is one thing an extractor found.
type Fact struct {
	Text string
	Type string // fact, preference, …: an open set
	Key  string // what it is about; facts of one type and key are compared
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

// Mutation adds one record.
type Mutation struct {
	RecordID string
	Number   int64
	Fact     Fact
}

// newPlan freezes facts under ids. existing[i], when not nil, is the record
// that says fact i already. first is the first of the numbers allotted for
// MemorySync, ignored on FishMem.
func newPlan(t *Task, facts []Fact, existing []*Record, first int64) *Plan {
	p := &Plan{}
	parts := make([]string, 0, 4*len(facts))
	for i, f := range facts {
		if existing[i] != nil {
			r := existing[i]
			p.Evidence = append(p.Evidence, Evidence{ID: r.ID, Number: r.Number, Text: r.Text, Existing: true})
			continue
		}
		m := Mutation{RecordID: recordID(t.ID, i), Fact: f}
		if t.Kind.Wire() == MemorySync {
			m.Number = first
			first++
		}
		p.Mutations = append(p.Mutations, m)
		p.Evidence = append(p.Evidence, Evidence{ID: m.RecordID, Number: m.Number, Text: f.Text})
		parts = append(parts, m.RecordID, strconv.FormatInt(m.Number, 10), f.Type, f.Key, f.Text)
	}
	for _, e := range p.Evidence {
		parts = append(parts, e.ID)
	}
	p.Hash = hashOf("plan", parts...)
	return p
}

// redacted keeps the ids and the hash.
func (p *Plan) redacted() *Plan {
	out := &Plan{Hash: p.Hash, Mutations: make([]Mutation, len(p.Mutations))}
	for i, m := range p.Mutations {
		out.Mutations[i] = Mutation{RecordID: m.RecordID, Number: m.Number}
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
	s := hex.EncodeToString(b)
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}
