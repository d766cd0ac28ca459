package transport

import (
	"time"

	"github.com/memwrite/memwrite-go/internal/sched"
)

// pause is the part of the gate that obeys a 429.
//
// A limit on requests is a limit on the client, not on the call that happened
// to be told. If every call has to find out for itself, a thousand calls send
// a thousand requests into a limit that was already announced. So one 429
// stops them all: no call leaves before the wait is over, then one leaves
// first, and when it is answered the rest drain as after an outage.
//
// Time in a pause does not count against the 30 s a call waits at the gate,
// and neither does the drain that follows one: the server is well and has said
// when it takes calls again. It is bounded all the same: a call whose context
// ends inside the pause ends at once, and one that spent the longest allowed
// server wait in pauses ends with ErrGate.
type pause struct {
	until  time.Time
	quiet  watch // runs in a pause
	frozen watch // runs in a pause and in the drain after it
}

// pauseJitter is how long after a pause the first call leaves at most.
const pauseJitter = time.Second

// throttled begins a pause or prolongs the one there is. It never shortens it.
func (g *gate) throttled(now time.Time, hint time.Duration, f *Failure) Event {
	if g.pauseOff || hint <= 0 {
		if g.state == gateShut { // it answers; that is what the gate wants to know
			return g.answered(true, now)
		}
		return Event{}
	}
	until := now.Add(min(hint, g.maxPause))
	if g.state == gatePaused && !until.After(g.pause.until) {
		return Event{}
	}
	if g.state == gateOpen {
		g.rate, g.sure = g.calls.perSecond(now)
	}
	g.state, g.last, g.row = gatePaused, f, 0
	g.pause.until = until
	if f.Decision.HasHint {
		g.asked = now.Add(min(f.Decision.Hint, g.maxPause))
	}
	g.pause.quiet.run(now)
	g.pause.frozen.run(now)
	// Clients that were told the same number do not come back as one.
	g.nextAt = until.Add(g.jitter(min(hint/10, pauseJitter)))
	// Calls whose deadline comes first need not wait to find that out.
	g.wakeAll()
	return Event{Kind: Paused, Wait: until.Sub(now), Waiting: g.queue.Len()}
}

func (g *gate) jitter(span time.Duration) time.Duration { return sched.Jitter(g.sched, span) }

// watch is a stop watch.
type watch struct {
	sum     time.Duration
	since   time.Time
	running bool
}

func (w *watch) run(now time.Time) {
	if !w.running {
		w.since, w.running = now, true
	}
}

func (w *watch) stop(now time.Time) {
	if w.running {
		w.sum, w.running = w.read(now), false
	}
}

func (w *watch) read(now time.Time) time.Duration {
	if w.running {
		return w.sum + now.Sub(w.since)
	}
	return w.sum
}
