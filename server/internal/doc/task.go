package doc

import (
	"fmt"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// OfTask writes a task down, all but its version.
func OfTask(t *protocol.Task) ([]byte, error) { return AppendTask(make([]byte, 0, usual), t) }

// AppendTask appends what OfTask gives to b.
func AppendTask(b []byte, t *protocol.Task) ([]byte, error) {
	w := &writer{b: append(b, '{')}
	w.must("id", t.ID)
	w.must("workspace", t.Workspace)
	w.must("kind", string(t.Kind))
	ofScope(w, &t.Scope)
	if id := &t.Identity; !id.Hash.IsZero() || id.Window != 0 || id.FirstWins {
		w.object("identity", func() {
			if !id.Hash.IsZero() { // else it takes no room
				w.bytes("hash", id.Hash[:])
			}
			w.number("window", int64(id.Window))
			w.yes("first_wins", id.FirstWins)
		})
	}
	w.bytes("fingerprint", t.Fingerprint[:])
	if t.Command != nil {
		w.object("command", func() { ofCommand(w, t.Command) })
	}
	if t.Plan != nil {
		w.object("plan", func() { ofPlan(w, t.Plan) })
	}
	if r := t.Result; r != nil {
		w.object("result", func() {
			w.must("outcome", string(r.Outcome))
			ofEvidence(w, "records", r.Records)
		})
	}
	w.text("unit", string(t.Account.Unit))
	w.text("period", t.Account.Period)
	w.text("account", t.Account.Workspace)
	w.number("amount", t.Amount)
	w.text("reservation", t.Reservation)
	w.instant("created", t.CreatedAt)
	ofStanding(w, t)
	return w.end()
}

// Task reads a task back. The error holds nothing of the document.
func Task(doc []byte, version int64) (protocol.Task, error) {
	t := protocol.Task{Version: version}
	if err := read(doc, func(r *reader, name []byte) { toTask(r, &t, name) }); err != nil {
		return protocol.Task{}, fmt.Errorf("doc: a task cannot be read: %w", err)
	}
	return t, nil
}

func toTask(r *reader, t *protocol.Task, name []byte) {
	switch string(name) {
	case "id":
		t.ID = r.text()
	case "workspace":
		t.Workspace = r.text()
	case "kind":
		t.Kind = protocol.Kind(r.text())
	case "scope":
		toScope(r, &t.Scope)
	case "identity":
		r.object(func(name []byte) {
			switch id := &t.Identity; string(name) {
			case "hash":
				id.Hash = r.hash()
			case "window":
				id.Window = time.Duration(r.number())
			case "first_wins":
				id.FirstWins = r.yes()
			default:
				r.skip()
			}
		})
	case "fingerprint":
		t.Fingerprint = r.hash()
	case "command":
		toCommand(r, &t.Command)
	case "state":
		t.State = protocol.State(r.text())
	case "run":
		t.Run = int(r.number())
	case "attempts":
		t.Attempts = int(r.number())
	case "max_attempts":
		t.MaxAttempts = int(r.number())
	case "invalid":
		t.Invalid = int(r.number())
	case "lease":
		r.object(func(name []byte) {
			switch string(name) {
			case "owner":
				t.Lease.Owner = r.text()
			case "token":
				t.Lease.Token = r.text()
			case "expires":
				t.Lease.Expires = r.instant()
			default:
				r.skip()
			}
		})
	case "next_attempt":
		t.NextAttempt = r.instant()
	case "failure":
		toFailure(r, &t.Failure)
	case "plan":
		toPlan(r, &t.Plan)
	case "committed":
		t.Committed = r.yes()
	case "projection":
		t.Projection = protocol.Projection(r.text())
	case "result":
		toResult(r, &t.Result)
	case "unit":
		t.Account.Unit = protocol.Unit(r.text())
	case "period":
		t.Account.Period = r.text()
	case "account":
		t.Account.Workspace = r.text()
	case "amount":
		t.Amount = r.number()
	case "reservation":
		t.Reservation = r.text()
	case "transitions":
		t.Transitions = int(r.number())
	case "created":
		t.CreatedAt = r.instant()
	case "updated":
		t.UpdatedAt = r.instant()
	case "started":
		t.StartedAt = r.instant()
	case "completed":
		t.CompletedAt = r.instant()
	default:
		r.skip()
	}
}

func toFailure(r *reader, to **protocol.Failure) {
	if r.Null() {
		return
	}
	f := &protocol.Failure{}
	*to = f
	r.object(func(name []byte) {
		switch string(name) {
		case "class":
			f.Class = protocol.Class(r.text())
		case "code":
			f.Code = r.text()
		case "message":
			f.Message = r.text()
		default:
			r.skip()
		}
	})
}

func toResult(r *reader, to **protocol.Result) {
	if r.Null() {
		return
	}
	res := &protocol.Result{}
	*to = res
	r.object(func(name []byte) {
		switch string(name) {
		case "outcome":
			res.Outcome = protocol.Outcome(r.text())
		case "records":
			res.Records = toEvidence(r)
		default:
			r.skip()
		}
	})
}
