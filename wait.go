package memwrite

import (
	"context"
	"errors"
	"time"

	"github.com/memwrite/memwrite-go/internal/sched"
)

// The schedule of polls, for servers that do not hold a request.
const (
	minPoll       = 350 * time.Millisecond
	maxPoll       = 5 * time.Second
	pollShare     = 13               // a poll follows after two such parts of the time since the last change: about a sixth
	retryingQuiet = 60 * time.Second // the shortest back-off of a failed attempt: nothing to see before
	minRetryPoll  = 2 * time.Second
	holdFor       = 25 * time.Second // what Prefer asks for, at most
	holdSlack     = 2 * time.Second  // that a held request must end before its try does
	notFoundGrace = 5 * time.Second  // a read may reach a replica that lags
	maxQuick      = 3                // answers at once from a server that says it holds, before it is polled
	neverHold     = maxQuick + 1     // a wait's quick from then on
	toldSlower    = 4                // times slower when an event source tells of what happened
)

// WaitOption adds to one wait.
type WaitOption func(*waitSettings)

type waitSettings struct {
	onChange func(Event)
}

// OnChange calls f with each state the wait sees, the first and the last
// included, from the goroutine that waits. States nobody knows are shown too.
func OnChange(f func(Event)) WaitOption {
	return func(s *waitSettings) { s.onChange = f }
}

// WaitForEvent waits until an event ends and returns it when it SUCCEEDED;
// [Event.NoMemory] tells one that stored nothing.
//
// It asks the server to hold the request until the state changes (Prefer: wait,
// RFC 7240), and polls one that does not: after about a sixth of the time since
// the last change, 0.35 s to 5 s, and not at all in the first minute of
// RETRYING. Many waits of one client share 300 polls a minute.
//
// Only ctx bounds the wait. Errors: ErrEventFailed with Error.Event;
// ErrStillPending with Error.Receipt when ctx ended first, which says nothing
// against the write; ErrUnauthorized, ErrForbidden, ErrNotFound at once. Faults
// that can pass are waited out.
func (c *Client) WaitForEvent(ctx context.Context, id string, opts ...WaitOption) (*Event, error) {
	return c.wait(ctx, "WaitForEvent", Receipt{EventID: id}, opts)
}

// Resume goes on waiting from a stored receipt, also in another process.
func (c *Client) Resume(ctx context.Context, r Receipt, opts ...WaitOption) (*Event, error) {
	return c.wait(ctx, "Resume", r, opts)
}

// waiting is the state of one wait.
type waiting struct {
	client  *Client
	op      string
	receipt Receipt
	set     waitSettings
	seat    *seat

	last    *Event // nil before the first read
	status  EventStatus
	started time.Time
	changed time.Time
	quick   int // answers in a row that a server said it held and did not; neverHold after one that was cut
}

func (c *Client) wait(ctx context.Context, op string, r Receipt, opts []WaitOption) (*Event, error) {
	if _, err := c.forFishMem(op); err != nil {
		return nil, err
	}
	if err := checkID(op, r.EventID); err != nil {
		return nil, err
	}
	w := &waiting{client: c, op: op, receipt: r, status: r.Status, started: c.sched.Now()}
	w.changed = w.started
	for _, o := range opts {
		o(&w.set)
	}
	w.seat = c.waits.join(r.EventID)
	defer c.waits.leave(w.seat)
	for {
		seen, err := w.look(ctx)
		delay := time.Duration(0)
		switch {
		case err != nil && ctx.Err() != nil:
			return w.stillPending(ctx)
		case err != nil:
			if !w.tolerable(err) {
				var e *Error
				if errors.As(err, &e) {
					e.Op, e.Event = op, w.last
					e.Receipt = &Receipt{EventID: r.EventID, Status: w.status, Key: r.Key}
				}
				return nil, err
			}
			delay = w.afterFault(err)
		case w.take(seen.event):
			return w.end()
		default:
			delay = w.next(seen)
		}
		if err := c.sched.Wait(ctx, delay, w.seat.wake); err != nil && !errors.Is(err, sched.ErrElapsed) {
			return w.stillPending(ctx)
		}
	}
}

// sight is one look at the event.
type sight struct {
	event *Event
	held  bool          // the server held the request, or says it would
	took  time.Duration // of the read
	hint  time.Duration // Retry-After of the answer
	same  bool          // the state is the one known before
}

// take records what was seen and tells whether that was the end.
func (w *waiting) take(ev *Event) bool {
	if w.last == nil || ev.Status != w.status {
		if w.last != nil {
			w.changed = w.client.sched.Now()
		}
		if w.client.watching() {
			w.client.watch(Observation{
				Kind: ObserveWaitState, Time: w.client.sched.Now(), Service: "fishmem", Op: w.op,
				EventID: ev.ID, State: ev.Status,
			})
		}
		if w.set.onChange != nil {
			w.set.onChange(*ev)
		}
	}
	w.last, w.status = ev, ev.Status
	return ev.Status.Terminal()
}

// next is how long to wait before the next look.
func (w *waiting) next(s sight) time.Duration {
	now := w.client.sched.Now()
	since := now.Sub(w.changed)
	if s.held && (!s.same || s.took >= time.Second) && s.hint == 0 {
		// A request that is held again costs nothing. But a server that
		// answers every one of them at once is polled like any other.
		if s.took < time.Second {
			w.quick++
		} else {
			w.quick = 0
		}
		if w.quick <= maxQuick {
			return 0
		}
	}
	// Only a server that is polled is left alone while it backs off: one that
	// holds the request answers when the next attempt begins.
	if w.status == Retrying && since < retryingQuiet {
		return max(retryingQuiet-since, min(s.hint, w.maxServerWait()))
	}
	slow := time.Duration(1)
	if w.client.waits.told {
		slow = toldSlower
	}
	d := slow * since * 2 / pollShare
	d = d*3/4 + sched.Jitter(w.client.sched, d/2)
	if w.status == Retrying { // the back-off may end at any moment from here on
		d = slow * (minRetryPoll + sched.Jitter(w.client.sched, maxPoll-minRetryPoll))
	}
	return max(min(max(d, slow*minPoll), slow*maxPoll), min(s.hint, w.maxServerWait()))
}

// tolerable faults pass; the others end the wait.
func (w *waiting) tolerable(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	if e.Kind == KindNotFound {
		return w.client.sched.Now().Sub(w.started) < notFoundGrace
	}
	return e.Retryable()
}

func (w *waiting) afterFault(err error) time.Duration {
	var e *Error
	errors.As(err, &e)
	if e.Kind == KindNotFound {
		return minPoll
	}
	d := maxPoll/2 + sched.Jitter(w.client.sched, maxPoll/2)
	return max(d, min(e.RetryAfter, w.maxServerWait()))
}

func (w *waiting) maxServerWait() time.Duration {
	if d := w.client.retry.MaxServerWait; d > 0 {
		return d
	}
	return 90 * time.Second
}

func (w *waiting) end() (*Event, error) {
	ev := w.last
	if ev.Status == Succeeded {
		return ev, nil
	}
	return nil, &Error{
		Op: w.op, Kind: KindEventFailed, Identity: first(w.receipt.Key, ev.ID), Code: clip(oneLine(ev.ErrorCode), 100), Event: ev,
		Receipt: &Receipt{EventID: ev.ID, Status: ev.Status, Key: w.receipt.Key},
		Message: "event " + clip(oneLine(ev.ID), 200) + " ended FAILED after " + itoa(ev.Attempts) +
			" attempts and no memory was committed; replaying its key runs nothing, Redrive does",
	}
}

func (w *waiting) stillPending(ctx context.Context) (*Event, error) {
	return nil, &Error{
		Op: w.op, Kind: KindStillPending, Identity: first(w.receipt.Key, w.receipt.EventID), Event: w.last,
		Receipt: &Receipt{EventID: w.receipt.EventID, Status: w.status, Key: w.receipt.Key},
		Message: "the wait for event " + clip(oneLine(w.receipt.EventID), 200) + " ended first; the last state seen is " + clip(oneLine(first(string(w.status), "none")), 100),
		causes:  causesOf(ctx),
	}
}
