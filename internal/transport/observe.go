package transport

import (
	"context"
	"fmt"
	"time"
)

// EventKind names what an Event tells.
type EventKind uint8

const (
	TryStarted EventKind = iota + 1 // a try goes out
	TryDone                         // its answer was read, or there is none
	Retry                           // another try follows after Wait
	GateShut                        // Wait is the time to the first probe
	GateOpened                      // the server answers again; waiting calls drain
	Paused                          // no call leaves for Wait
	Resumed                         // the first call after a pause was answered
	Drained                         // no call waits any more
)

func (k EventKind) String() string {
	names := [...]string{"", "try_started", "try_done", "retry", "gate_shut", "gate_opened", "paused", "resumed", "drained"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("event(%d)", uint8(k))
}

// Event is something worth seeing. It holds no key, no URL and no body.
// Gate and pause events belong to the client and have no Op.
type Event struct {
	Kind    EventKind
	Time    time.Time
	Op      string
	Try     int
	Status  int // 0: no answer
	Class   Class
	Reason  string
	Wait    time.Duration // Retry, GateShut, Paused
	Elapsed time.Duration // TryDone: from sending to the end of the body
	Probe   bool          // the try is the one let through a shut gate or an ended pause
	Gate    bool          // Retry: no back-off, the call waits behind the gate
	Waiting int           // calls behind the gate or the pause
	Err     error         // TryDone without an answer

	Context context.Context // the call's; nil for gate and pause
}

// began reports a try that goes out. Without an observer nobody wants the time.
func (r *run) began() time.Time {
	if r.c.observe == nil {
		return time.Time{}
	}
	r.c.emit(Event{Kind: TryStarted, Op: r.call.Op, Try: r.tries, Context: r.ctx})
	return r.c.sched.Now()
}

func (r *run) ended(began time.Time) {
	if r.c.observe == nil {
		return
	}
	done := Event{
		Kind: TryDone, Op: r.call.Op, Try: r.tries, Class: r.decision.Class, Reason: r.decision.Reason,
		Elapsed: r.c.sched.Now().Sub(began), Err: r.err, Context: r.ctx,
	}
	if r.answer != nil {
		done.Status = r.answer.Status
	}
	r.c.emit(done)
}

func (c *Client) emit(e Event) {
	if c.observe != nil {
		if e.Time.IsZero() {
			e.Time = c.sched.Now()
		}
		c.observe(e)
	}
}
