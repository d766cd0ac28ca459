package transport

import (
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/memwrite/memwrite-go/internal/sched"
)

// fullJitter is a backoff.BackOff that draws each wait between nothing and a
// range that doubles. Full jitter spreads callers that failed together over
// the whole range, so that they do not come back together; the exponential
// back-off of the library draws within ±50 % and leaves half the range empty.
//
// The cap bounds the range, not the wait drawn from it, and no wait is below
// the floor. It never ends by itself: the number of tries does that.
type fullJitter struct {
	sched             sched.Scheduler
	first, cap, floor time.Duration
	span              time.Duration // range of the next draw
}

var _ backoff.BackOff = (*fullJitter)(nil)

func newFullJitter(s sched.Scheduler, base, limit, floor time.Duration) *fullJitter {
	b := &fullJitter{sched: s, first: base, cap: limit, floor: floor}
	b.Reset()
	return b
}

// NextBackOff draws a wait and doubles the range.
func (b *fullJitter) NextBackOff() time.Duration {
	span := min(b.span, b.cap)
	b.span = min(2*span, b.cap) // both at most the cap: cannot overflow for any sane cap
	return max(sched.Jitter(b.sched, span), b.floor)
}

// Reset starts again from the first range.
func (b *fullJitter) Reset() { b.span = min(b.first, b.cap) }

// aboveHint is a wait that honours what the server asked for and does not send
// everybody who was told the same number back at the same moment.
func aboveHint(s sched.Scheduler, hint time.Duration) time.Duration {
	return hint + sched.Jitter(s, min(hint/10, time.Second))
}
