package mockserver

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Kind is what goes wrong, by its meaning and not by the line that breaks.
//
// Of the connection and the answer: [DropResponse], [Truncate], [Stall],
// [Reset], [Status], [IdempotencyIncomplete] and [ReservationInProgress].
//
// Behind the answer: [ProviderTimeout], [ProviderInvalid], [ProviderDown],
// [ProviderRefuses], [ProviderRejects], [KillRunner], [FreezeRunner],
// [ExpireLease], [LoseWakeup], [DuplicateWakeup], [DelayWakeup],
// [FailProjection], [ExhaustCredits], [ExhaustQuota] and [LateArrival].
type Kind string

// Faults of the connection and of the answer. The ones marked "after" happen
// when the service has done its work and committed it.
const (
	DropResponse          Kind = "drop_response"                 // after: the connection closes without an answer
	Truncate              Kind = "truncate"                      // after: the answer ends after Bytes bytes
	Stall                 Kind = "stall"                         // after: the answer comes Delay late, or never when Delay is 0
	Reset                 Kind = "reset"                         // before: the connection closes, the service never sees the request
	Status                Kind = "status"                        // before: answers Code, with RetryAfter when it is set
	IdempotencyIncomplete Kind = "idempotency_incomplete"        // before: 409 IDEMPOTENCY_INCOMPLETE
	ReservationInProgress Kind = "usage_reservation_in_progress" // before: 409 USAGE_RESERVATION_IN_PROGRESS
)

// Faults behind the answer.
const (
	ProviderTimeout Kind = "provider_timeout" // the model does not answer in time
	ProviderInvalid Kind = "provider_invalid" // the model answers what is no plan
	ProviderDown    Kind = "provider_down"    // the model cannot be reached
	ProviderRefuses Kind = "provider_refuses" // the model's provider takes the server's key no more
	ProviderRejects Kind = "provider_rejects" // the model refuses the input for good
	KillRunner      Kind = "kill_runner"      // the runner dies at Point and says nothing; its lease runs out
	FreezeRunner    Kind = "freeze_runner"    // the runner stands still at Point until Release
	ExpireLease     Kind = "expire_lease"     // the lease is over at Point although the runner goes on
	LoseWakeup      Kind = "lose_wakeup"      // nobody tells a runner; repair has to find the task
	DuplicateWakeup Kind = "duplicate_wakeup" // a runner is told twice
	DelayWakeup     Kind = "delay_wakeup"     // a runner is told Delay later
	FailProjection  Kind = "fail_projection"  // records are committed, their vectors are not written
	ExhaustCredits  Kind = "exhaust_credits"  // no FishMem credits: 402
	ExhaustQuota    Kind = "exhaust_quota"    // the MemorySync monthly adds are used up
	LateArrival     Kind = "late_arrival"     // whether a write is recognised is judged as if it came Delay later
)

// Point is where in an attempt a runner fault strikes: [BeforeInference],
// [AfterInference], [AfterPlan], [AfterCommit] or [BeforeFinish].
type Point string

// The points of an attempt, in order.
const (
	BeforeInference Point = "before_inference"
	AfterInference  Point = "after_inference"
	AfterPlan       Point = "after_plan"
	AfterCommit     Point = "after_commit"
	BeforeFinish    Point = "before_finish"
)

// Fault is one thing that shall go wrong, where, and how often. Its zero limits
// mean: everywhere, once.
type Fault struct {
	Kind  Kind  `json:"kind"`
	Point Point `json:"point,omitempty"` // of runner faults; "" is BeforeInference

	// Key narrows it to one identity: a client_ref, an Idempotency-Key, or
	// the text of a turn. Empty matches all.
	Key string `json:"key,omitempty"`
	// Route narrows a connection fault to one "METHOD /path", as requested.
	Route string `json:"route,omitempty"`

	Skip  int `json:"skip,omitempty"`  // lets so many matches go by first
	Times int `json:"times,omitempty"` // strikes so often, then disarms itself; 0 is once, -1 until disarmed

	// Chance, if set, strikes each match with this probability, drawn from
	// Seed: the same seed strikes the same matches.
	Chance float64 `json:"chance,omitempty"`
	Seed   uint64  `json:"seed,omitempty"`

	Code       int           `json:"code,omitempty"`        // of Status; 0 is 503
	ErrorCode  string        `json:"error_code,omitempty"`  // of Status, in the service's own shape; empty is the usual one of Code
	RetryAfter string        `json:"retry_after,omitempty"` // header as sent: seconds, an HTTP-date, or nonsense
	Body       string        `json:"body,omitempty"`        // of Status; empty is the service's own shape
	Delay      time.Duration `json:"delay_ns,omitempty"`
	Bytes      int           `json:"bytes,omitempty"`
}

// Armed is a fault that waits for its moment.
type Armed struct {
	reg   *faults
	fault Fault
	rng   *rand.Rand
	seen  int
	fired int
	off   bool
	gate  chan struct{} // what a frozen runner waits for
}

// Fired is how often it has struck.
func (a *Armed) Fired() int {
	a.reg.mu.Lock()
	defer a.reg.mu.Unlock()
	return a.fired
}

// Disarm stops it, and releases what it holds. A second call does nothing.
func (a *Armed) Disarm() {
	a.reg.mu.Lock()
	defer a.reg.mu.Unlock()
	a.off = true
	a.release()
}

// Release lets a runner that FreezeRunner holds go on, and an answer that
// Stall holds.
func (a *Armed) Release() {
	a.reg.mu.Lock()
	defer a.reg.mu.Unlock()
	a.release()
}

func (a *Armed) release() {
	select {
	case <-a.gate:
	default:
		close(a.gate)
	}
}

// faults is what is armed, oldest first, and what has struck.
type faults struct {
	now   func() time.Time
	some  atomic.Bool // something is armed; most servers have nothing, and ask many times a write
	mu    sync.Mutex
	armed []*Armed
	log   []Strike
}

var errFault = errors.New("mockserver: this fault can never strike as it is")

// kinds is every fault there is.
var kinds = []Kind{
	DropResponse, Truncate, Stall, Reset, Status, IdempotencyIncomplete, ReservationInProgress,
	ProviderTimeout, ProviderInvalid, ProviderDown, ProviderRefuses, ProviderRejects, KillRunner, FreezeRunner, ExpireLease,
	LoseWakeup, DuplicateWakeup, DelayWakeup, FailProjection, ExhaustCredits, ExhaustQuota, LateArrival,
}

func (k Kind) known() bool { return slices.Contains(kinds, k) }

func (f *faults) arm(fault Fault) (*Armed, error) {
	if err := fault.check(); err != nil {
		return nil, err
	}
	if fault.Times == 0 {
		fault.Times = 1
	}
	if fault.Point == "" {
		fault.Point = BeforeInference
	}
	a := &Armed{reg: f, fault: fault, gate: make(chan struct{})}
	if fault.Chance > 0 {
		a.rng = rand.New(rand.NewPCG(fault.Seed, 0x6d656d7772697465))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = append(f.armed, a)
	f.some.Store(true)
	return a, nil
}

// strike finds the first armed fault of one of the kinds that match accepts,
// counts it, notes what it struck and gives it; nil when nothing goes wrong.
func (f *faults) strike(what func() Strike, match func(*Fault) bool, kinds ...Kind) *Armed {
	if !f.some.Load() {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.armed {
		if a.off || !slices.Contains(kinds, a.fault.Kind) || !match(&a.fault) {
			continue
		}
		a.seen++
		if a.seen <= a.fault.Skip || (a.rng != nil && a.rng.Float64() >= a.fault.Chance) {
			continue
		}
		a.fired++
		if a.fault.Times > 0 && a.fired >= a.fault.Times {
			a.off = true
		}
		s := what()
		s.Fault, s.At = a.fault.Kind, f.now()
		if a.fault.Kind.atPoint() {
			s.Point = a.fault.Point
		}
		f.note(s)
		return a
	}
	return nil
}

// clear disarms everything and lets go of whatever is held.
func (f *faults) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.armed {
		a.off = true
		a.release()
	}
	f.armed = nil
	f.some.Store(false)
}

// forget also drops what has struck.
func (f *faults) forget() {
	f.clear()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = nil
}

// listed is a fault as the control API shows it.
type listed struct {
	Number int  `json:"number"`
	Fired  int  `json:"fired"`
	Over   bool `json:"over"`
	Fault
}

func (f *faults) list() []listed {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]listed, len(f.armed))
	for i, a := range f.armed {
		out[i] = listed{i + 1, a.fired, a.off, a.fault}
	}
	return out
}

func (f *faults) number(a *Armed) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Index(f.armed, a) + 1
}

func (f *faults) at(n int) *Armed {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n < 1 || n > len(f.armed) {
		return nil
	}
	return f.armed[n-1]
}
