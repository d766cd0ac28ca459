package sim

import (
	"math/rand/v2"
	"time"
)

// Script is what a seed makes of a schedule before it runs: how the world is
// made, what its clients want, and what goes wrong. Taking an operation or a
// fault out of it leaves the rest as it is, which is how a failure shrinks.
type Script struct {
	Seed    uint64
	World   Shape
	Intents []Intent
	Ops     []Op
	Faults  []Fault
}

// Shape is how the world is made.
type Shape struct {
	Workspaces, Nodes, Clients int
	Runners, MaxAttempts       int
	Lease, Repair, BackOff     time.Duration
	Credits, Adds              int64
	Strict                     bool
	Invalid                    int
	Sticky                     uint64
	Late                       time.Duration
	StoreTime                  time.Duration // the longest an ordinary store operation takes
}

// Intent is one thing a caller wants stored once, however often it is sent.
type Intent struct {
	Number    int
	Kind      IntentKind
	Workspace int
	User      int
	Facts     int  // how many the extractor finds
	Twice     bool // the extractor finds its facts twice
	Shared    int  // above 0: one fact more, which other intents have too
	Of        int  // above 0: the number of the intent whose identity it takes
}

// IntentKind is the operation that stores an intent.
type IntentKind string

// The kinds of intents.
const (
	WantAdd      IntentKind = "add"
	WantTurn     IntentKind = "turn"
	WantInfer    IntentKind = "infer"
	WantVerbatim IntentKind = "verbatim"
)

// Verb is what a client does in one operation.
type Verb string

// The verbs.
const (
	Send    Verb = "send"    // an intent, new or again
	Await   Verb = "await"   // the event of an intent
	Redrive Verb = "redrive" // the event of an intent
	Look    Verb = "look"    // at events, records, usage
	Forget  Verb = "forget"  // what an intent stored
)

// Op is one operation of a client.
type Op struct {
	Client int
	Verb   Verb
	Intent int // index into Script.Intents
	Direct bool
	Draw   uint64
	Pause  time.Duration // before it
}

// NewScript draws the script of a seed.
func NewScript(seed uint64) *Script {
	r := rand.New(rand.NewPCG(seed, 0x736372697074))
	pick := func(ds ...time.Duration) time.Duration { return ds[r.IntN(len(ds))] }
	some := func(from, to int) int { return from + r.IntN(to-from+1) }
	s := &Script{Seed: seed}
	s.World = Shape{
		Workspaces: some(1, 2), Nodes: some(1, 2), Clients: some(2, 4), Runners: some(1, 4), MaxAttempts: some(1, 4),
		Lease: pick(4*time.Second, 10*time.Second, 30*time.Second), Repair: pick(time.Second, 5*time.Second), BackOff: pick(100*time.Millisecond, time.Second),
		Credits: -1, Adds: -1, Strict: r.IntN(2) == 0, Invalid: r.IntN(3),
		Sticky: []uint64{0, 0, 100, 200, 245}[r.IntN(5)], Late: pick(0, time.Millisecond, 300*time.Millisecond),
		StoreTime: pick(0, time.Millisecond, 20*time.Millisecond),
	}
	if r.IntN(3) > 0 {
		s.World.Credits, s.World.Adds = int64(r.IntN(24)), int64(r.IntN(12))
	}
	for n := range some(9, 14) {
		in := Intent{
			Number: n + 1, Kind: []IntentKind{WantAdd, WantTurn, WantInfer, WantInfer, WantVerbatim}[r.IntN(5)],
			Workspace: r.IntN(s.World.Workspaces), User: r.IntN(2), Facts: []int{0, 1, 1, 1, 2, 3}[r.IntN(6)], Twice: r.IntN(6) == 0,
		}
		if r.IntN(4) == 0 {
			in.Shared = some(1, 2)
		}
		if n > 0 && r.IntN(4) == 0 { // another command under the identity of a former one
			in.Of = 1 + r.IntN(n)
		}
		s.Intents = append(s.Intents, in)
	}
	verbs := []Verb{Send, Send, Send, Send, Send, Send, Await, Await, Redrive, Look, Forget}
	for range some(36, 48) {
		s.Ops = append(s.Ops, Op{
			Client: r.IntN(s.World.Clients), Verb: verbs[r.IntN(len(verbs))], Intent: r.IntN(len(s.Intents)),
			Direct: r.IntN(2) == 0, Draw: r.Uint64(), Pause: pick(0, 0, 10*time.Millisecond, 500*time.Millisecond, 3*time.Second),
		})
	}
	for range some(10, 26) {
		s.Faults = append(s.Faults, newFault(r, s.World))
	}
	return s
}

// newFault draws a fault: a place first, so that rare places are struck as
// often as those that are passed all the time.
func newFault(r *rand.Rand, w Shape) Fault {
	at := r.IntN(int(places))
	f := Fault{At: at, N: 1 + r.IntN(kindsAt[at].span), Draw: r.Uint64()}
	f.Kind = kindsAt[at].kinds[r.IntN(len(kindsAt[at].kinds))]
	switch r.IntN(4) { // from a moment to much more than a lease
	case 0:
		f.Span = time.Duration(r.Int64N(int64(100 * time.Millisecond)))
	case 1:
		f.Span = time.Duration(r.Int64N(int64(w.Lease)))
	default:
		f.Span = time.Duration(r.Int64N(int64(4 * w.Lease)))
	}
	if f.At == int(atCall) { // a call is short
		f.Span = time.Duration(r.Int64N(int64([]time.Duration{time.Millisecond, 40 * time.Millisecond, w.Lease}[r.IntN(3)])))
	}
	if f.Kind == ClockJump {
		f.Span = []time.Duration{time.Second, w.Lease, w.Lease + time.Second, time.Hour, 25 * time.Hour, 31 * 24 * time.Hour}[r.IntN(6)]
	}
	return f
}
