package doc

import "github.com/memwrite/memwrite-go/internal/protocol"

func ofPlan(w *writer, p *protocol.Plan) {
	w.bytes("hash", p.Hash[:])
	array(w, "mutations", p.Mutations, func(m *protocol.Mutation) {
		w.element(func() {
			w.must("record", m.RecordID)
			w.number("number", m.Number)
			w.text("text", m.Fact.Text)
			w.text("type", m.Fact.Type)
			w.text("key", m.Fact.Key)
			w.yes("replaces", m.Fact.Replaces)
			w.texts("supersedes", m.Supersedes)
		})
	})
	ofEvidence(w, "evidence", p.Evidence)
}

func toPlan(r *reader, to **protocol.Plan) {
	if r.Null() {
		return
	}
	p := &protocol.Plan{}
	*to = p
	r.object(func(name []byte) {
		switch string(name) {
		case "hash":
			p.Hash = r.hash()
		case "mutations":
			p.Mutations = arrayOf(r, func(m *protocol.Mutation) { toMutation(r, m) })
		case "evidence":
			p.Evidence = toEvidence(r)
		default:
			r.skip()
		}
	})
}

func toMutation(r *reader, m *protocol.Mutation) {
	r.object(func(name []byte) {
		switch string(name) {
		case "record":
			m.RecordID = r.text()
		case "number":
			m.Number = r.number()
		case "text":
			m.Fact.Text = r.text()
		case "type":
			m.Fact.Type = r.text()
		case "key":
			m.Fact.Key = r.text()
		case "replaces":
			m.Fact.Replaces = r.yes()
		case "supersedes":
			m.Supersedes = r.texts()
		default:
			r.skip()
		}
	})
}

func ofEvidence(w *writer, name string, es []protocol.Evidence) {
	array(w, name, es, func(e *protocol.Evidence) {
		w.element(func() {
			w.must("id", e.ID)
			w.number("number", e.Number)
			w.yes("existing", e.Existing)
		})
	})
}

func toEvidence(r *reader) []protocol.Evidence {
	return arrayOf(r, func(e *protocol.Evidence) {
		r.object(func(name []byte) {
			switch string(name) {
			case "id":
				e.ID = r.text()
			case "number":
				e.Number = r.number()
			case "existing":
				e.Existing = r.yes()
			default:
				r.skip()
			}
		})
	})
}
