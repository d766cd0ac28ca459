package linear

import (
	"math/rand/v2"
	"slices"

	"github.com/anishathalye/porcupine"
)

// acceptIn is a write under a key, or with event set a read of an event that the
// key named.
type acceptIn struct {
	key     string
	command string
	read    bool
}

// acceptOut is what came back.
type acceptOut struct {
	known    bool
	conflict bool
	event    string
	status   string
	attempts int
}

// accepted is what a server knows of one key.
type accepted struct {
	command  string // "" when it is free
	event    string // "" when nobody has seen it yet
	status   string // the last that was seen
	attempts int
}

// order is how far a task has come within an attempt.
var order = []string{"PENDING", "RUNNING", "RETRYING", "SUCCEEDED", "FAILED"}

func terminal(status string) bool { return status == "SUCCEEDED" || status == "FAILED" }

// moves says that a task may have come from one state to the other by itself.
// A receipt does not say the attempt: -1.
func moves(from accepted, status string, attempts int) bool {
	switch {
	case !slices.Contains(order, status):
		return false
	case terminal(from.status):
		return status == from.status && (attempts < 0 || from.attempts < 0 || attempts == from.attempts)
	case attempts < 0 || from.attempts < 0 || terminal(status):
		return attempts < 0 || from.attempts < 0 || attempts >= from.attempts
	case attempts == from.attempts:
		return slices.Index(order, status) >= slices.Index(order, from.status)
	}
	return attempts > from.attempts
}

// acceptModel: the first command under a key makes the one event it will ever
// name; the same command again names it, another is a conflict without effect;
// the event goes forward only and ends once.
var acceptModel = porcupine.NondeterministicModel{
	Partition: by(func(in any) string { return in.(acceptIn).key }),
	Init:      func() []any { return []any{accepted{}} },
	Step: func(state, input, output any) []any {
		s, in, out := state.(accepted), input.(acceptIn), output.(acceptOut)
		if in.read {
			s.attempts = max(s.attempts, -1)
			ok := s.command != "" && (s.event == "" || s.event == out.event) && moves(s, out.status, out.attempts)
			s.event, s.status, s.attempts = out.event, out.status, out.attempts
			return one(ok, s)
		}
		if !out.known {
			if s.command != "" {
				return []any{s} // a twin or a conflict: nothing changes
			}
			return []any{s, accepted{command: in.command, status: "PENDING", attempts: -1}}
		}
		if out.conflict {
			return one(s.command != "" && s.command != in.command, s)
		}
		if s.command == "" {
			return one(out.event != "", accepted{command: in.command, event: out.event, status: out.status, attempts: -1})
		}
		ok := s.command == in.command && (s.event == "" || s.event == out.event) && moves(s, out.status, -1)
		s.event = out.event
		if out.status != s.status {
			s.status, s.attempts = out.status, -1
		}
		return one(ok, s)
	},
}

// acceptScenario writes under a few keys, each with two commands, and reads what
// it knows of.
func acceptScenario(w *world, client int, rng *rand.Rand) {
	var events []acceptIn
	ids := map[string]string{}
	for range w.size(24) {
		if len(events) > 0 && rng.IntN(3) == 0 {
			in := events[rng.IntN(len(events))]
			in.read = true
			call := w.history.now()
			if a := w.get("/v1/events/" + ids[in.key]); a.status == 200 {
				w.history.add(client, call, in, acceptOut{known: true, event: a.text("id"), status: a.text("status"), attempts: a.number("attempts")}, true)
			} // a read that fails has no effect and says nothing
			continue
		}
		in := acceptIn{key: string(rune('a' + rng.IntN(5))), command: []string{"one", "two"}[rng.IntN(2)]}
		call := w.history.now()
		a := w.post(w.name+in.key, `{"user_id":"`+w.name+`","content":"My team ships `+in.command+` releases every Thursday."}`)
		switch {
		case a.status == 202:
			w.history.add(client, call, in, acceptOut{known: true, event: a.text("event_id"), status: a.text("status")}, true)
			ids[in.key] = a.text("event_id")
			events = append(events, acceptIn{key: in.key})
		case a.status == 409 && a.text("code") == "IDEMPOTENCY_CONFLICT":
			w.history.add(client, call, in, acceptOut{known: true, conflict: true}, true)
		case !a.unsent:
			w.history.add(client, call, in, acceptOut{}, false)
		}
	}
}
