package sim

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/memwrite/memwrite-go/internal/sched"
)

// scheduler is a sched.Scheduler that runs one runnable at a time, each as a
// coroutine, on a clock of its own. Which goes on next, how late a timer is
// and every random number come from one source.
//
// A runnable gives way only in Wait, so what stands between two waits is one
// step. A step takes next to no time on the clock; when nobody can go on, the
// clock jumps to the next timer.
type scheduler struct {
	now     time.Time
	rng     *rand.Rand
	pool    *pool
	procs   []*proc
	able    []int // scratch: indexes of procs that can go on
	running *proc
	timers  timers
	made    int
	steps   int
	// sticky, of 256, is how often the runnable that just ran goes on if it
	// can: long runs of one beside fine interleaving.
	sticky uint64
	// late is how far behind its time a timer fires at most, so that several
	// are due in one moment.
	late  time.Duration
	trace func(p *proc, outcome int) // told of every step
}

// proc is one runnable.
type proc struct {
	number int
	owner  string // what it belongs to, inherited
	on     *coroutine

	// what it waits for
	ctx   context.Context
	done  <-chan struct{}
	wake  <-chan struct{}
	timed bool
	at    time.Time
	got   error // how the wait ended
}

// The outcomes of a wait, as bits of what is the case.
const (
	byWake = 1 << iota
	byTime
	byContext
)

func newScheduler(p *pool, rng *rand.Rand, now time.Time) *scheduler {
	return &scheduler{pool: p, rng: rng, now: now}
}

var _ sched.Scheduler = (*scheduler)(nil)

func (s *scheduler) Now() time.Time { return s.now }
func (s *scheduler) Uint64() uint64 { return s.rng.Uint64() }

// Go makes a runnable. It first runs in a later step.
func (s *scheduler) Go(f func()) {
	s.made++
	p := &proc{number: s.made, timed: true, at: s.now, on: s.pool.take(f)}
	if s.running != nil {
		p.owner = s.running.owner
	}
	s.procs = append(s.procs, p)
}

// goAs is Go for a runnable that belongs to somebody else.
func (s *scheduler) goAs(owner string, f func()) {
	s.Go(f)
	s.procs[len(s.procs)-1].owner = owner
}

// owned is the scheduler as one owner uses it: what it starts is its own.
type owned struct {
	*scheduler
	owner string
}

func (o owned) Go(f func()) { o.goAs(o.owner, f) }

func (s *scheduler) Wait(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case <-wake:
		return nil
	default:
	}
	if d <= 0 && d != sched.Forever {
		return sched.ErrElapsed
	}
	return s.park(ctx, d, wake)
}

// step gives way without waiting for anything.
func (s *scheduler) step() { _ = s.park(context.Background(), 0, nil) }

func (s *scheduler) park(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	p := s.running
	if p == nil {
		panic("sim: a wait outside of every runnable")
	}
	p.ctx, p.done, p.wake = ctx, ctx.Done(), wake
	if p.timed = d != sched.Forever; p.timed {
		p.at = s.now.Add(d)
	}
	p.on.yield(struct{}{})
	return p.got
}

// can says why p can go on now, without taking anything.
func (s *scheduler) can(p *proc) int {
	why := 0
	if p.timed && !p.at.After(s.now) {
		why = byTime
	}
	if p.wake != nil {
		if len(p.wake) > 0 {
			why |= byWake
		} else {
			select {
			case <-p.wake: // closed: nobody else runs who could have sent
				why |= byWake
			default:
			}
		}
	}
	if p.done != nil {
		select {
		case <-p.done:
			why |= byContext
		default:
		}
	}
	return why
}

// errStuck: runnables are left and nothing will ever wake one of them.
var errStuck = errors.New("runnables are left that nothing will wake")

// errRunaway: more steps than any life needs, so something spins.
var errRunaway = errors.New("too many steps: something spins")

// run makes steps until over says so after one, or no runnable is left.
func (s *scheduler) run(most int, over func() bool) error {
	last := -1
	for len(s.procs) > 0 && !over() {
		if s.steps++; s.steps > most {
			return errRunaway
		}
		i := last
		if i < 0 || i >= len(s.procs) || s.rng.Uint64()&255 >= s.sticky || s.can(s.procs[i]) == 0 {
			if i = s.pick(); i < 0 {
				if !s.forward() {
					return fmt.Errorf("%w: %d, the first of %s", errStuck, len(s.procs), s.procs[0].owner)
				}
				continue
			}
		}
		last = i
		s.resume(i)
	}
	return nil
}

func (s *scheduler) pick() int {
	s.able = s.able[:0]
	for i, p := range s.procs {
		if s.can(p) != 0 {
			s.able = append(s.able, i)
		}
	}
	switch len(s.able) {
	case 0:
		return -1
	case 1:
		return s.able[0]
	}
	return s.able[s.rng.IntN(len(s.able))]
}

func (s *scheduler) resume(i int) {
	p := s.procs[i]
	why := s.can(p)
	if why&(why-1) != 0 { // several at once: any of them, as a select takes any
		for {
			if bit := 1 << s.rng.IntN(3); why&bit != 0 {
				why = bit
				break
			}
		}
	}
	switch why {
	case byWake:
		select {
		case <-p.wake:
		default:
		}
		p.got = nil
	case byContext:
		p.got = context.Cause(p.ctx)
	default:
		p.got = sched.ErrElapsed
	}
	if s.trace != nil {
		s.trace(p, why)
	}
	s.now = s.now.Add(time.Duration(s.rng.Uint64() & 0x7fff)) // up to 33 µs
	s.fire()
	p.wake, p.done, p.ctx = nil, nil, nil
	s.running = p
	p.on.resume()
	s.running = nil
	if p.on.ended {
		s.pool.free = append(s.pool.free, p.on)
		last := len(s.procs) - 1
		copy(s.procs[i:], s.procs[i+1:])
		s.procs[last] = nil
		s.procs = s.procs[:last]
	}
}

// forward moves the clock to the next timer; false when there is none.
func (s *scheduler) forward() bool {
	var next time.Time
	for _, p := range s.procs {
		if p.timed && (next.IsZero() || p.at.Before(next)) {
			next = p.at
		}
	}
	if len(s.timers) > 0 && (next.IsZero() || s.timers[0].at.Before(next)) {
		next = s.timers[0].at
	}
	if next.IsZero() {
		return false
	}
	s.jump(max(next.Sub(s.now), 0) + sched.Jitter(s, s.late))
	return true
}

// jump moves the clock forward.
func (s *scheduler) jump(d time.Duration) {
	s.now = s.now.Add(d)
	s.fire()
}

func (s *scheduler) fire() {
	for len(s.timers) > 0 && !s.timers[0].at.After(s.now) {
		heap.Pop(&s.timers).(*timeout).expire()
	}
}
