package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// Kind is what goes wrong.
type Kind string

// The kinds of faults.
const (
	StoreBefore     Kind = "store_error_before" // the store fails and has done nothing
	StoreAfter      Kind = "store_error_after"  // the store fails and has done it all the same
	StoreSlow       Kind = "store_slow"         // the store takes a while
	NodeCrash       Kind = "node_crash"         // a node dies before a store operation, and comes back
	NodeStop        Kind = "node_stop"          // a node is drained, closed and started anew
	NodeCrashAfter  Kind = "node_crash_after"   // a node dies after one, before it hears of it
	RunnerKill      Kind = "runner_kill"        // at a named point; its lease runs out
	RunnerFreeze    Kind = "runner_freeze"      // at a named point; it wakes as a zombie
	LeaseExpire     Kind = "lease_expire"       // at a named point; the runner does not know
	ProviderTimeout Kind = "provider_timeout"
	ProviderInvalid Kind = "provider_invalid"
	ProviderDown    Kind = "provider_down"
	ProviderSlow    Kind = "provider_slow" // the extractor answers late and ignores its context
	WakeupLost      Kind = "wakeup_lost"
	WakeupDouble    Kind = "wakeup_double"
	WakeupLate      Kind = "wakeup_late"
	ProjectionFails Kind = "projection_fails"
	ClockJump       Kind = "clock_jump"
	RequestLost     Kind = "request_lost"   // the server never sees it
	RequestTwice    Kind = "request_twice"  // and once more at the same time
	RequestLate     Kind = "request_late"   // the caller sees a reset, the server a request long after
	AnswerLost      Kind = "answer_lost"    // the work is done, the caller sees a reset
	AnswerLate      Kind = "answer_late"    // the work is done, the answer takes long
	AnswerCut       Kind = "answer_cut"     // the work is done, half an answer comes
	AnswerRefused   Kind = "answer_refused" // a 429, 5xx or 409 in the server's place
	ClientCrash     Kind = "client_crash"   // the caller dies in the middle of a call, and comes back
	ClientTimeout   Kind = "client_timeout" // the caller's own deadline is short
	CreditsGone     Kind = "credits_exhausted"
	QuotaGone       Kind = "quota_exhausted"
)

// place is where a fault may strike: each place is passed many times in a
// life, and a fault says at which passing it strikes.
type place int

const (
	atStore place = iota
	atWrite
	atRunner
	atInference
	atProjecting
	atWakeup
	atRequest
	atCall
	atMoney
	atTime
	places
)

// kinds of a place, and the span of passings among which a fault of it draws.
var kindsAt = [places]struct {
	span  int
	kinds []Kind
}{
	atStore:      {400, []Kind{StoreSlow, StoreBefore, NodeCrash, NodeStop}},
	atWrite:      {140, []Kind{StoreBefore, StoreAfter, StoreAfter, StoreSlow, NodeCrash, NodeCrashAfter}},
	atRunner:     {70, []Kind{RunnerKill, RunnerFreeze, RunnerFreeze, LeaseExpire}},
	atInference:  {16, []Kind{ProviderTimeout, ProviderInvalid, ProviderDown, ProviderSlow}},
	atProjecting: {16, []Kind{ProjectionFails}},
	atWakeup:     {18, []Kind{WakeupLost, WakeupLost, WakeupDouble, WakeupLate}},
	atRequest:    {40, []Kind{RequestLost, RequestTwice, RequestLate, AnswerLost, AnswerLate, AnswerCut, AnswerRefused, AnswerRefused}},
	atCall:       {36, []Kind{ClientCrash, ClientTimeout}},
	atMoney:      {36, []Kind{CreditsGone, QuotaGone}},
	atTime:       {1500, []Kind{ClockJump}},
}

// Fault strikes once, when its place is passed for the N-th time.
type Fault struct {
	Kind  Kind
	At    int // place
	N     int
	Span  time.Duration // how long it lasts
	Draw  uint64        // for what else it has to choose
	fired bool
}

func (f Fault) String() string {
	return fmt.Sprintf("%s at passing %d of %s, %v", f.Kind, f.N, placeNames[f.At], f.Span)
}

var placeNames = [places]string{"store", "write", "runner", "inference", "projecting", "wakeup", "request", "call", "money", "time"}

// strike counts a passing and gives the fault that strikes now, or nil. While
// the world is calm nothing strikes.
func (w *world) strike(p place) *Fault {
	w.passed[p]++
	if w.calm {
		return nil
	}
	list := w.faults[p]
	for len(list) > 0 && list[0].N < w.passed[p] {
		list = list[1:]
	}
	w.faults[p] = list
	if len(list) == 0 || list[0].N != w.passed[p] {
		return nil
	}
	f := list[0]
	w.faults[p] = list[1:]
	f.fired = true
	return f
}

// fired counts a fault that has struck; detail is a point or "".
func (w *world) fired(f *Fault, detail string) {
	w.tally[f.Kind]++
	w.note("fault", string(f.Kind), detail, int64(f.Span))
}

func sortFaults(fs []*Fault) {
	slices.SortStableFunc(fs, func(a, b *Fault) int { return a.N - b.N })
}

// At is where an engine asks whether something goes wrong now.
func (n *node) At(p protocol.Point, t protocol.Task) protocol.Fault {
	w := n.world
	if p == protocol.BeforeInference || p == protocol.Inference || p == protocol.AfterInference {
		w.audit.inferring(t)
	}
	switch p {
	case protocol.Inference:
		if f := w.strike(atInference); f != nil {
			w.fired(f, "")
			switch f.Kind {
			case ProviderTimeout:
				return failWith(protocol.ProviderTimeout, "the model did not answer in time")
			case ProviderInvalid:
				return failWith(protocol.InvalidOutput, "the model's answer is not a list of facts")
			case ProviderDown:
				return failWith(protocol.Infrastructure, "the model cannot be reached")
			}
			n.slow = f.Span // ProviderSlow: the next call of the extractor takes so long
		}
	case protocol.Projecting:
		if f := w.strike(atProjecting); f != nil {
			w.fired(f, "")
			return failWith(protocol.ProjectionError, "the vector store is away")
		}
	case protocol.Wakeup:
		f := w.strike(atWakeup)
		if f == nil {
			return protocol.Fault{}
		}
		w.fired(f, "")
		switch f.Kind {
		case WakeupLost:
			return protocol.Fault{Act: protocol.Lose}
		case WakeupDouble:
			return protocol.Fault{Act: protocol.Double}
		}
		return protocol.Fault{Act: protocol.Delay, Delay: int64(f.Span)}
	case protocol.BeforeInference, protocol.AfterInference, protocol.AfterPlan, protocol.AfterCommit, protocol.BeforeFinish:
		return n.atPoint(p)
	}
	return protocol.Fault{}
}

// Quiet says that nothing happens at the points of a task. Half of all tasks
// are like that, so that the shorter way an engine then takes is walked too.
func (n *node) Quiet(taskID string) bool { return n.world.quiet(taskID) }

func (w *world) quiet(task string) bool {
	last := task[len(task)-1]
	return last < '8' // of a hex digit
}

func (n *node) atPoint(p protocol.Point) protocol.Fault {
	w := n.world
	f := w.strike(atRunner)
	if f == nil {
		return protocol.Fault{}
	}
	w.fired(f, string(p))
	w.points[string(f.Kind)+"@"+string(p)]++
	switch f.Kind {
	case RunnerKill:
		w.crashes++
		return protocol.Fault{Act: protocol.Kill}
	case LeaseExpire:
		return protocol.Fault{Act: protocol.Expire}
	}
	release := make(chan struct{})
	w.sched.goAs("fault", func() { w.sleep(f.Span); close(release) })
	return protocol.Fault{Act: protocol.Freeze, Release: release}
}

func failWith(c protocol.Class, message string) protocol.Fault {
	return protocol.Fault{Act: protocol.FailWith, Failure: protocol.Fail(c, message)}
}
