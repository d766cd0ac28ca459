package transport

import (
	"container/list"
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/memwrite/memwrite-go/internal/sched"
)

// gate is where the calls of one client wait while the server is down or has
// asked for quiet. Every try passes through it.
//
// Back-off alone is made for one call. A thousand calls a second that each
// back off still send a thousand first tries a second to a server that is
// down, and each gives up after its own few tries. The gate looks at all of
// them: after ten failed answers in a row the server is taken to be down, and
// from then on one call at a time, the oldest, is sent to find out whether it
// is back. The others wait in the order they were made and are not sent at
// all: that is what saves the server, and, because waiting costs them neither
// tries nor tokens, what saves the calls.
//
//	open ──10 failures in a row──▶ shut ──a good answer──▶ draining ──empty──▶ open
//	  └──────────429──────────▶ paused ──a good answer──────▲
//
// Ten, because with half of all answers failing at random five in a row happen
// sixteen times in a second of a thousand calls, ten once in two seconds.
//
// When the server is back the queue is not let loose on it: it drains at 1.2
// times the rate at which calls were made before, counted over ten seconds, or
// over the last two if those had more. New calls join at its end,
// so that the order holds. Should calls be made faster now than before the
// outage, the drain follows that rate; it would never end otherwise.
//
// There is no goroutine: the call at the head of the queue keeps its own time
// and wakes its successor when it leaves.
type gate struct {
	sched    sched.Scheduler
	policy   GatePolicy
	pauseOff bool
	maxPause time.Duration // longest time one call spends in pauses
	emit     func(Event)

	mu     sync.Mutex
	state  gateState
	row    int           // failed answers in a row
	queue  list.List     // of *pass, by seq
	probe  *pass         // the call that is out to find out
	nextAt time.Time     // the head does not leave before
	asked  time.Time     // until when the server itself asked to be left alone
	span   time.Duration // range of the next wait between probes
	rate   float64       // calls per second before it shut
	sure   bool          // whether that is more than a lower bound
	calls  rateWindow
	pause  pause
	last   *Failure // what closed the way; told to calls that end unsent

	drainAt time.Time // when the drain began

	untold  []Event // in the order they happened
	telling bool    // somebody is at it
}

type gateState uint8

const (
	gateOpen gateState = iota
	gateShut
	gatePaused
	gateDraining
)

// pass is one call's way through the gate.
type pass struct {
	seq     uint64
	wake    chan struct{}
	left    time.Duration // of GatePolicy.MaxWait
	quiet   time.Duration // of the longest time in pauses
	entered bool          // it is inside: the marks below are set
	at      time.Time     // when it came in
	frozen  time.Duration // readings of the pause's two watches then
	paused  time.Duration
}

func newGate(s sched.Scheduler, p Policy, emit func(Event)) *gate {
	return &gate{
		sched: s, policy: p.Gate, pauseOff: p.Pause.Off, maxPause: p.MaxServerWait, emit: emit,
		calls: rateWindow{start: s.Now()},
	}
}

// admit counts a call that begins and gives it its pass.
func (g *gate) admit(p *pass, seq uint64) {
	g.mu.Lock()
	g.calls.add(g.sched.Now())
	g.mu.Unlock()
	*p = pass{seq: seq, left: g.policy.MaxWait, quiet: g.maxPause + pauseJitter}
}

// enter returns when the call may send its next try, and says whether that try
// is a probe. Otherwise it returns why not: the context's cause, a wait that
// would exceed the deadline, or ErrGate; wait is then how much longer the
// server asked to be left alone. Each enter that returns nil must be followed by
// one leave.
func (g *gate) enter(ctx context.Context, p *pass) (probe bool, wait time.Duration, err error) {
	g.mu.Lock()
	if g.state == gateOpen {
		p.entered = false
		g.mu.Unlock()
		return false, 0, nil
	}
	if p.wake == nil {
		p.wake = make(chan struct{}, 1)
	}
	if now := g.sched.Now(); !p.entered {
		p.entered, p.at = true, now
		p.frozen, p.paused = g.pause.frozen.read(now), g.pause.quiet.read(now)
	}
	place := g.insert(p)
	for {
		now := g.sched.Now()
		patience, wait, err := g.patience(ctx, p, now)
		if err != nil {
			g.remove(place)
			g.mu.Unlock()
			return false, wait, err
		}
		d := patience
		if g.queue.Front() == place {
			if g.state == gateOpen || g.probe == nil && !now.Before(g.nextAt) {
				probe := g.grant(place, p, now)
				g.mu.Unlock()
				g.tell()
				return probe, 0, nil
			}
			if g.probe == nil {
				d = min(d, g.nextAt.Sub(now))
			}
		}
		g.mu.Unlock()
		err = g.sched.Wait(ctx, d, p.wake)
		g.mu.Lock()
		if err != nil && !errors.Is(err, sched.ErrElapsed) {
			g.remove(place)
			g.mu.Unlock()
			return false, 0, err
		}
	}
}

// patience is how long the call goes on waiting at most, or why it does not.
func (g *gate) patience(ctx context.Context, p *pass, now time.Time) (d, wait time.Duration, err error) {
	frozen, quiet := g.pause.frozen.read(now)-p.frozen, g.pause.quiet.read(now)-p.paused
	left, quietLeft := p.left-(now.Sub(p.at)-frozen), p.quiet-quiet
	ahead := time.Duration(0)
	until := g.pause.until
	if g.state == gateShut {
		until = g.asked // the zero time unless the server said how long it is down
	}
	wait = max(g.asked.Sub(now), 0)
	if g.state == gatePaused || g.state == gateShut {
		ahead = max(until.Sub(now), 0)
		if deadline, ok := ctx.Deadline(); ok && deadline.Before(until) {
			return 0, wait, &deadlineError{ahead, context.DeadlineExceeded}
		}
	}
	if left <= 0 || quietLeft <= 0 || g.state == gatePaused && quietLeft < ahead { // it would not outlast the pause
		return 0, wait, ErrGate
	}
	return min(left, quietLeft), 0, nil
}

// grant lets the head of the queue go.
func (g *gate) grant(place *list.Element, p *pass, now time.Time) (probe bool) {
	switch g.state {
	case gateShut, gatePaused:
		// The probe stays inside: the time it is out counts as waiting, or a
		// server that swallows requests would keep it for ever.
		g.probe, probe = p, true
		g.pause.quiet.stop(now)
	case gateDraining:
		// Timers are late by a millisecond or so; what they lose is caught up
		// within a small burst, so that a fast drain keeps its rate.
		g.nextAt = g.nextAt.Add(g.interval(now))
		if earliest := now.Add(-50 * time.Millisecond); g.nextAt.Before(earliest) {
			g.nextAt = earliest
		}
	}
	if !probe {
		p.left -= now.Sub(p.at) - (g.pause.frozen.read(now) - p.frozen)
		p.quiet -= g.pause.quiet.read(now) - p.paused
		p.entered = false
	}
	g.remove(place)
	if g.state == gateDraining && g.queue.Len() == 0 {
		g.state = gateOpen
		g.pause.frozen.stop(now)
		g.note(Event{Kind: Drained, Time: now})
	}
	return probe
}

// interval is the time between two calls of a drain. A rate that is no more
// than a lower bound doubles with each second the server stays well: workers
// that make their next call when the last one has ended show their rate only
// while nothing holds them, and would crawl at a wrong one for minutes.
func (g *gate) interval(now time.Time) time.Duration {
	recent, _ := g.calls.perSecond(now)
	rate := max(g.rate, 1)
	if !g.sure {
		rate *= math.Exp2(now.Sub(g.drainAt).Seconds())
	}
	return time.Duration(float64(time.Second) / (1.2 * max(rate, recent)))
}

// insert puts the call at its place by age. Calls that were sent before are
// older than those that never left, so they find their place near the front.
func (g *gate) insert(p *pass) *list.Element {
	if back := g.queue.Back(); back == nil || back.Value.(*pass).seq < p.seq {
		return g.queue.PushBack(p)
	}
	e := g.queue.Front()
	for e.Value.(*pass).seq < p.seq {
		e = e.Next()
	}
	return g.queue.InsertBefore(p, e)
}

func (g *gate) remove(place *list.Element) {
	wasHead := g.queue.Front() == place
	g.queue.Remove(place)
	if wasHead {
		g.wakeHead()
	}
}

func (g *gate) wakeHead() {
	if head := g.queue.Front(); head != nil {
		head.Value.(*pass).signal()
	}
}

func (g *gate) wakeAll() {
	for e := g.queue.Front(); e != nil; e = e.Next() {
		e.Value.(*pass).signal()
	}
}

func (p *pass) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// note keeps an event of the gate for tell. It is called with mu held.
func (g *gate) note(e Event) {
	if e.Kind != 0 && g.emit != nil {
		g.untold = append(g.untold, e)
	}
}

// tell emits what was noted: in the order it happened, one at a time, and
// outside the lock, so that an observer may call the client. Whoever comes
// while somebody tells leaves its event to them.
func (g *gate) tell() {
	g.mu.Lock()
	if g.telling || len(g.untold) == 0 {
		g.mu.Unlock()
		return
	}
	g.telling = true
	defer func() { // also when the observer panics
		g.telling = false
		g.mu.Unlock()
	}()
	for len(g.untold) > 0 {
		e := g.untold[0]
		g.untold = g.untold[1:]
		g.mu.Unlock()
		func() {
			defer g.mu.Lock()
			g.emit(e)
		}()
	}
}
