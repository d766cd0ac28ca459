// Package company lets who commits for a group wait a moment for those who were
// in the last one: they have been answered just now and mostly come back at once.
// Without it they would go with every second group only, which is as many commits
// again.
package company

import (
	"context"
	"sync"
	"time"

	"github.com/memwrite/memwrite-go/internal/sched"
)

// most bounds how long somebody waits for company.
const most = time.Millisecond

// shy is how many groups nobody waits for after one whose company stayed away:
// who has other things to do between two writes is better served at once.
const shy = 32

// Company remembers the last group. Its methods are called with the lock held
// that guards what waits.
type Company struct {
	sched  sched.Scheduler
	part   time.Duration // of what the last group took is waited
	last   int           // how many were in the last group
	took   time.Duration // how long it took
	want   int           // how many are gathered; 0: nobody gathers
	came   int           // how many waited when the last one came
	shy    int           // how many groups more nobody waits for
	enough chan struct{} // one buffered signal: so many wait
}

// New has no group yet. A group is waited for as long as the last one took, divided
// by part, at most: the more of that was the commit itself, the longer a wait for
// those who would need one of their own is worth it.
func New(s sched.Scheduler, part int) *Company {
	return &Company{sched: s, part: time.Duration(part), enough: make(chan struct{}, 1)}
}

// Came tells that so many wait now.
func (c *Company) Came(waiting int) {
	c.came = waiting
	if c.want > 0 && waiting >= c.want {
		c.want = 0
		c.enough <- struct{}{}
	}
}

// Gather lets go of the lock until as many wait as made the last group, those
// counted who lead it, or its part of what that took is over. One who writes
// alone never waits, and nobody does for a while when most of them did not come.
func (c *Company) Gather(mu *sync.Mutex, leaders, waiting int) {
	if c.last-leaders-waiting <= 0 {
		return
	}
	if c.shy > 0 {
		c.shy--
		return
	}
	c.came = waiting
	select {
	case <-c.enough: // of one who had gone on already
	default:
	}
	c.want = c.last - leaders
	mu.Unlock()
	_ = c.sched.Wait(context.Background(), min(c.took/c.part, most), c.enough)
	mu.Lock()
	c.want = 0
	if 4*(c.came+leaders) < 3*c.last {
		c.shy = shy
	}
}

// Now is the time of its clock.
func (c *Company) Now() time.Time { return c.sched.Now() }

// Served tells of a group that began then.
func (c *Company) Served(n int, began time.Time) { c.last, c.took = n, c.sched.Now().Sub(began) }
