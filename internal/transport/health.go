package transport

import "time"

// leave reports how the try that enter let through ended. f tells it to calls
// that end unsent while the way is closed. It says whether the call was a
// probe, and whether the way is closed now, so that the call should wait at
// the gate and not on a back-off of its own.
func (g *gate) leave(p *pass, class Class, hint time.Duration, f *Failure) (probe, closed bool) {
	g.mu.Lock()
	now := g.sched.Now()
	if g.probe == p {
		g.probe, probe = nil, true
	}
	var event Event
	switch {
	case class.down():
		event = g.failed(probe, now, hint, f)
	case class == Throttled:
		event = g.throttled(now, hint, f)
	default:
		event = g.answered(probe, now)
	}
	event.Time = now
	g.note(event)
	closed, tell := g.state == gateShut || g.state == gatePaused, len(g.untold) > 0
	g.mu.Unlock()
	if tell {
		g.tell()
	}
	return probe, closed
}

// abandon is leave for a try whose caller went away before it was answered: it
// says nothing about the server.
func (g *gate) abandon(p *pass) {
	g.mu.Lock()
	if g.probe == p {
		g.probe = nil
		g.wakeHead()
	}
	g.mu.Unlock()
}

func (g *gate) failed(probe bool, now time.Time, hint time.Duration, f *Failure) Event {
	g.row++
	g.last = f
	switch {
	case g.policy.Off:
		if probe { // nothing to wait for: the pause is over and the gate is not wanted
			return g.answered(probe, now)
		}
		return Event{}
	case probe: // still down, or down after a pause
		wasShut := g.state == gateShut
		g.shut(now, hint)
		if wasShut {
			return Event{}
		}
	case (g.state == gateOpen || g.state == gateDraining) && g.row >= g.policy.Failures:
		if g.state == gateOpen {
			g.rate, g.sure = g.calls.perSecond(now)
		}
		g.span = g.policy.ProbeMin
		g.shut(now, hint)
	default:
		if at := now.Add(min(hint, g.maxPause)); g.state == gateShut && hint > 0 && at.After(g.asked) {
			g.asked = at
			if at.After(g.nextAt) {
				g.nextAt = at
			}
			g.wakeAll() // those whose deadline comes first
		}
		return Event{}
	}
	return Event{Kind: GateShut, Wait: g.nextAt.Sub(now), Waiting: g.queue.Len()}
}

// shut sets the time of the next probe: full jitter over a range that doubles,
// never before what the server asked for.
func (g *gate) shut(now time.Time, hint time.Duration) {
	g.state = gateShut
	g.pause.frozen.stop(now)
	g.pause.quiet.stop(now)
	g.span = max(g.span, g.policy.ProbeMin)
	wait := max(g.jitter(g.span), min(hint, g.maxPause))
	g.span = min(2*g.span, g.policy.ProbeMax)
	g.nextAt = now.Add(wait)
	if hint <= 0 {
		g.wakeHead()
		return
	}
	g.asked = now.Add(min(hint, g.maxPause))
	g.wakeAll()
}

func (g *gate) answered(probe bool, now time.Time) Event {
	g.row = 0
	var kind EventKind
	switch {
	case g.state == gateShut:
		kind = GateOpened
	case g.state == gatePaused && probe:
		// Only the call sent after the pause ends it: an answer to one sent
		// before says nothing about what the server asked for since.
		kind = Resumed
	default:
		return Event{}
	}
	event := Event{Kind: kind, Waiting: g.queue.Len()}
	if g.queue.Len() == 0 {
		g.state = gateOpen
		g.pause.frozen.stop(now)
	} else {
		g.state, g.drainAt = gateDraining, now
		g.nextAt = now.Add(g.interval(now))
	}
	g.span, g.asked = 0, time.Time{}
	g.probe = nil // a probe still out is an ordinary try from here on
	g.wakeHead()
	return event
}

// rateWindow counts calls in the last ten seconds, second by second.
type rateWindow struct {
	start  time.Time
	second int64
	counts [11]int // one more than ten: the running second is not whole
}

func (w *rateWindow) add(now time.Time) { w.counts[w.turn(now)]++ }

func (w *rateWindow) turn(now time.Time) int {
	second := int64(now.Sub(w.start) / time.Second)
	n := int64(len(w.counts))
	for ; w.second < second && second-w.second < 2*n; w.second++ {
		w.counts[(w.second+1)%n] = 0
	}
	if w.second < second { // nothing for a long time
		w.counts, w.second = [11]int{}, second
	}
	return int(w.second % n)
}

// perSecond is the rate over the ten seconds that are whole, or over the last
// two of them when calls have become more frequent, or over those there were
// when the client is younger.
//
// sure is false when calls began in fewer than five of the ten: the client is
// young, or was idle, or its callers were all waiting a moment ago. The rate is
// then no more than a lower bound.
func (w *rateWindow) perSecond(now time.Time) (rate float64, sure bool) {
	running, n := w.turn(now), len(w.counts)
	whole := int(min(w.second, int64(n-1)))
	if whole == 0 {
		return float64(w.counts[running]), false
	}
	sum, busy := 0, 0
	for back := 1; back <= whole; back++ {
		count := w.counts[(running+n-back)%n]
		sum += count
		if count > 0 {
			busy++
		}
		if back == min(2, whole) {
			rate = float64(sum) / float64(back)
		}
	}
	return max(rate, float64(sum)/float64(whole)), busy >= 5
}
