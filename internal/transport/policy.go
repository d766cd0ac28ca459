package transport

import (
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Policy holds every number of the try loop. A zero field means its default,
// so the zero Policy is the default policy.
type Policy struct {
	// MaxTries is the number of tries of one call, the first included.
	// Default 5; 1 never tries again.
	MaxTries int

	// Base is the range of the first back-off after a failed answer or none;
	// the range doubles with each further one. Default 1 s: a base of 50 ms
	// would give up after 0.2 s and save no call in a blip of two seconds.
	Base time.Duration

	// ThrottledBase is Base for a 429 that does not say how long to wait.
	// Default 5 s.
	ThrottledBase time.Duration

	// UnwrittenBase is the range of the first back-off when the request never
	// left, a refused connection for example. Default 100 ms.
	UnwrittenBase time.Duration

	// Cap bounds the range before the jitter is drawn. Default 20 s.
	Cap time.Duration

	// Floor is the shortest wait there is. Default 20 ms.
	Floor time.Duration

	// TryTimeout bounds one try, its answer's body included. Running into it
	// is no answer and is tried again; the context of the call is another
	// matter. Default 30 s.
	TryTimeout time.Duration

	// MaxServerWait is the longest wait a server may ask for. A longer one
	// ends the call at once with the wait in Failure.Wait. Default 90 s.
	MaxServerWait time.Duration

	// BodyLimit is how many bytes of an answer that is no error are read,
	// after decompression. Default 16 MiB.
	BodyLimit int64

	// ErrorBodyLimit is the same for answers of status 300 and above. Up to
	// 256 KiB more is read and dropped to keep the connection. Default 64 KiB.
	ErrorBodyLimit int64

	// NewBackOff replaces the full-jitter back-off. It is called once a call
	// and the result is used by that call alone. backoff.Stop ends the call.
	// Waits below Floor are raised to it.
	NewBackOff func() backoff.BackOff

	Budget BudgetPolicy
	Gate   GatePolicy
	Pause  PausePolicy
}

// BudgetPolicy bounds the retries of all calls of one client together.
type BudgetPolicy struct {
	Off       bool // no budget: only MaxTries bounds retries
	Tokens    int  // full bucket; default 500
	Cost      int  // tokens of one retry; default 14
	Throttled int  // tokens of a retry after a 429; default 5
}

// GatePolicy holds back the calls of one client while its server is down.
type GatePolicy struct {
	Off      bool
	Failures int           // failed answers in a row that shut it; default 10
	ProbeMin time.Duration // range of the wait before the first probe; default 250 ms
	ProbeMax time.Duration // the range doubles up to this; default 5 s
	MaxWait  time.Duration // longest wait of one call; default 30 s
}

// PausePolicy makes a 429 count for every call of the client.
type PausePolicy struct {
	Off bool // the call that got the 429 waits alone
}

func (p Policy) withDefaults() Policy {
	orInt(&p.MaxTries, 5)
	orDur(&p.Base, time.Second)
	orDur(&p.ThrottledBase, 5*time.Second)
	orDur(&p.UnwrittenBase, 100*time.Millisecond)
	orDur(&p.Cap, 20*time.Second)
	orDur(&p.Floor, 20*time.Millisecond)
	orDur(&p.TryTimeout, 30*time.Second)
	orDur(&p.MaxServerWait, 90*time.Second)
	if p.BodyLimit <= 0 {
		p.BodyLimit = 16 << 20
	}
	if p.ErrorBodyLimit <= 0 {
		p.ErrorBodyLimit = 64 << 10
	}
	orInt(&p.Budget.Tokens, 500)
	orInt(&p.Budget.Cost, 14)
	orInt(&p.Budget.Throttled, 5)
	orInt(&p.Gate.Failures, 10)
	orDur(&p.Gate.ProbeMin, 250*time.Millisecond)
	orDur(&p.Gate.ProbeMax, 5*time.Second)
	orDur(&p.Gate.MaxWait, 30*time.Second)
	return p
}

func orInt(p *int, d int) {
	if *p <= 0 {
		*p = d
	}
}

func orDur(p *time.Duration, d time.Duration) {
	if *p <= 0 {
		*p = d
	}
}
