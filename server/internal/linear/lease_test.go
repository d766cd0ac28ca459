package linear

import (
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/anishathalye/porcupine"
)

// leaseFor is how long a claim or a heartbeat holds in these histories.
const leaseFor = 120 * time.Millisecond

// clockSlack is by how much the clock that leases are judged by may differ from
// the one that times the history.
const clockSlack = 30 * time.Millisecond

// leaseIn is one step of a runner, which a client plays, or a read.
type leaseIn struct {
	task  string
	do    string // claim, heartbeat, finish, fail or read
	token string
	call  int64
}

type leaseOut struct {
	known    bool
	ok       bool // false: the server says that the lease is not held
	status   string
	attempts int
	returned int64
}

// leased is what a server knows of one task.
type leased struct {
	status   string
	token    string
	attempts int
	free     int64 // the earliest time its lease can be over
}

// leaseModel: one runner holds a task at a time, until its lease is over; every
// write but that of the holder is refused; the attempt counts at the claim.
var leaseModel = porcupine.NondeterministicModel{
	Partition: by(func(in any) string { return in.(leaseIn).task }),
	Init:      func() []any { return []any{leased{status: "PENDING"}} },
	Step: func(state, input, output any) []any {
		s, in, out := state.(leased), input.(leaseIn), output.(leaseOut)
		holds := s.status == "RUNNING" && s.token == in.token
		var next leased
		can := holds
		switch in.do {
		case "read":
			return one(out.status == s.status && out.attempts == s.attempts, s)
		case "claim":
			over := !out.known || out.returned+int64(clockSlack) >= s.free
			can = s.status == "PENDING" || s.status == "RETRYING" || (s.status == "RUNNING" && over)
			next = leased{"RUNNING", in.token, s.attempts + 1, in.call + int64(leaseFor)}
		case "heartbeat":
			next = s
			next.free = in.call + int64(leaseFor)
		case "finish":
			next = leased{status: "SUCCEEDED", attempts: s.attempts}
		case "fail":
			next = leased{status: "RETRYING", attempts: s.attempts}
		}
		switch {
		case !out.known && can:
			return []any{s, next}
		case !out.known:
			return []any{s}
		case out.ok:
			return one(can, next)
		case in.do == "claim":
			return []any{s} // nobody is promised a task
		}
		return one(!holds, s)
	},
}

// leaseScenario plays runners: quick ones, ones that beat, and ones that stand
// still until their lease is over and then go on as if nothing had happened.
func leaseScenario(w *world, client int, rng *rand.Rand) {
	held := map[string]string{}
	for i := range w.size(24) {
		task := w.tasks[rng.IntN(len(w.tasks))]
		in := leaseIn{task: task, do: "claim"}
		if token, ok := held[task]; ok {
			in.token = token
			in.do = []string{"heartbeat", "heartbeat", "finish", "fail", "heartbeat"}[rng.IntN(5)]
			if rng.IntN(3) == 0 {
				w.nap(leaseFor + time.Duration(rng.IntN(40))*time.Millisecond)
			}
			if in.do == "finish" && rng.IntN(2) == 0 {
				in.do = "heartbeat" // or every task would be over soon
			}
		} else if rng.IntN(4) == 0 {
			in.do = "read"
		} else {
			in.token = strconv.Itoa(client) + "-" + strconv.Itoa(i)
		}
		in.call = w.history.now()
		if in.do == "read" {
			if a := w.get("/v1/events/" + task); a.status == 200 {
				w.history.add(client, in.call, in, leaseOut{known: true, status: a.text("status"), attempts: a.number("attempts")}, true)
			}
			continue
		}
		a := w.step(in.do, task, in.token)
		if a.unsent {
			continue
		}
		out := leaseOut{known: a.status == 200, ok: a.text("answer") == "ok", returned: w.history.now()}
		w.history.add(client, in.call, in, out, out.known)
		switch {
		case in.do == "claim" && (out.ok || !out.known):
			held[task] = in.token
		case out.known && !out.ok, in.do == "finish", in.do == "fail":
			delete(held, task)
		}
	}
}
