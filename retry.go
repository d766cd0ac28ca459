package memwrite

import (
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/memwrite/memwrite-go/internal/transport"
)

// RetryPolicy holds the numbers of the try loop. A zero field means its
// default, so RetryPolicy{} is the default policy.
//
// A try is one HTTP exchange. Every try of a call carries the same identity;
// a write without one is sent once, whatever this says.
type RetryPolicy struct {
	MaxTries      int           // tries of one call, the first included; default 5
	Base          time.Duration // range of the first back-off, doubling; default 1 s
	ThrottledBase time.Duration // the same after a 429 that names no wait; default 5 s
	Cap           time.Duration // bounds the range before jitter; default 20 s
	Floor         time.Duration // the shortest wait; default 20 ms
	TryTimeout    time.Duration // of one try, its answer included; default 30 s
	MaxServerWait time.Duration // longest wait a server may ask for; default 90 s
	MaxAnswer     int64         // bytes of an answer; default 16 MiB

	// NewBackOff plugs in another strategy; it is called once a call.
	NewBackOff func() backoff.BackOff

	// NoBudget switches off the retry budget that all calls to one service
	// share, NoGate the gate that shuts after failures in a row, and NoPause
	// the pause that a 429 makes for every call.
	NoBudget, NoGate, NoPause bool

	GateFailures int           // failed answers in a row that shut the gate; default 10
	GateWait     time.Duration // longest wait of one call behind it; default 30 s
}

const defaultTryTimeout = 30 * time.Second

func (p RetryPolicy) transport() transport.Policy {
	return transport.Policy{
		MaxTries: p.MaxTries, Base: p.Base, ThrottledBase: p.ThrottledBase,
		Cap: p.Cap, Floor: p.Floor, TryTimeout: p.TryTimeout,
		MaxServerWait: p.MaxServerWait, BodyLimit: p.MaxAnswer, NewBackOff: p.NewBackOff,
		Budget: transport.BudgetPolicy{Off: p.NoBudget},
		Gate:   transport.GatePolicy{Off: p.NoGate, Failures: p.GateFailures, MaxWait: p.GateWait},
		Pause:  transport.PausePolicy{Off: p.NoPause},
	}
}
