package linear

import (
	"math/rand/v2"
	"strconv"

	"github.com/anishathalye/porcupine"
)

// granted is what the workspace of these histories has to spend.
const granted = 40

// creditIn is a call that may move credits, or a read of the account.
type creditIn struct {
	do    string // infer, verbatim, finish, fail, redrive or read
	units int
}

type creditOut struct {
	known   bool
	ok      bool // false: refused for want of credits
	repeat  bool // the key was there: nothing is charged
	account account
}

// account is the account's books.
type account struct{ available, reserved, settled, released int }

// creditModel: a write reserves its price if it is there and is refused
// otherwise; success settles, failure gives back, both once; a repeat moves
// nothing; what a read shows is one moment of that.
var creditModel = porcupine.NondeterministicModel{
	Init: func() []any { return []any{account{available: granted}} },
	Step: func(state, input, output any) []any {
		s, in, out := state.(account), input.(creditIn), output.(creditOut)
		next, can := s, true
		switch in.do {
		case "read":
			return one(out.account == s, s)
		case "infer", "redrive":
			can = s.available >= in.units
			next.available -= in.units
			next.reserved += in.units
		case "verbatim":
			can = s.available >= in.units
			next.available -= in.units
			next.settled += in.units
		case "finish":
			next.reserved -= in.units
			next.settled += in.units
		case "fail":
			next.reserved -= in.units
			next.available += in.units
			next.released += in.units
		}
		switch {
		case !out.known && can:
			return []any{s, next}
		case !out.known, out.repeat:
			return []any{s}
		case out.ok:
			return one(can && next.reserved >= 0, next)
		}
		return one(!can, s)
	},
}

// creditScenario spends, gives back and repeats until the account is short.
func creditScenario(w *world, client int, rng *rand.Rand) {
	type task struct{ id, key, body string }
	var running, failed []task
	add := func(in creditIn, call int64, a answer, ok bool, repeat bool) {
		known := ok || a.status == 402
		if !a.unsent {
			w.history.add(client, call, in, creditOut{known: known, ok: ok, repeat: repeat}, known)
		}
	}
	for i := range w.size(14) {
		call := w.history.now()
		key := w.name + strconv.Itoa(client) + "-" + strconv.Itoa(i)
		switch pick := rng.IntN(10); {
		case pick < 2:
			if a := w.get("/v1/usage"); a.status == 200 {
				w.history.add(client, call, creditIn{do: "read"}, creditOut{known: true, account: a.credits()}, true)
			}
		case pick < 3:
			a := w.post(key, `{"user_id":"`+key+`","content":"Kept as it is.","infer":false}`)
			add(creditIn{"verbatim", 1}, call, a, a.status == 200, a.replayed)
		case pick < 4 && len(failed) > 0:
			t := failed[0]
			failed = failed[1:]
			a := w.redrive(t.id)
			add(creditIn{"redrive", 2}, call, a, a.status == 202, false)
		case pick < 5 && len(running) > 0: // the repeat of a write that was accepted
			t := running[rng.IntN(len(running))]
			a := w.post(t.key, t.body)
			add(creditIn{"infer", 2}, call, a, a.status == 202, a.replayed)
		case pick < 8 && len(running) > 0:
			t := running[0]
			running = running[1:]
			if a := w.step("claim", t.id, key); a.text("answer") != "ok" {
				continue // its end would not be this client's: it stays open
			}
			do := []string{"finish", "fail-for-good"}[rng.IntN(2)]
			call = w.history.now()
			a := w.step(do, t.id, key)
			kind := map[string]string{"finish": "finish", "fail-for-good": "fail"}[do]
			add(creditIn{kind, 2}, call, a, a.text("answer") == "ok", false)
			if do == "fail-for-good" && a.text("answer") == "ok" {
				failed = append(failed, t)
			}
		default:
			t := task{key: key, body: `{"user_id":"` + key + `","content":"My team ships releases every Thursday."}`}
			a := w.post(t.key, t.body)
			add(creditIn{"infer", 2}, call, a, a.status == 202, a.replayed)
			if t.id = a.text("event_id"); t.id != "" {
				running = append(running, t)
			}
		}
	}
}
