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

// Company remembers the last group. Its methods are called with the lock held
// that guards what waits.
type Company struct {
	sched  sched.Scheduler
	last   int           // how many were in the last group
	took   time.Duration // how long it took
	want   int           // how many are gathered; 0: nobody gathers
	enough chan struct{} // one buffered signal: so many wait
}

// New has no group yet.
func New(s sched.Scheduler) *Company {
	return &Company{sched: s, enough: make(chan struct{}, 1)}
}

// Came tells that so many wait now.
func (c *Company) Came(waiting int) {
	if c.want > 0 && waiting >= c.want {
		c.want = 0
		c.enough <- struct{}{}
	}
}

// Gather lets go of the lock until as many wait as made the last group, those
// counted who lead it, or a quarter of what that took is over. One who writes
// alone never waits.
func (c *Company) Gather(mu *sync.Mutex, leaders, waiting int) {
	if c.last-leaders-waiting <= 0 {
		return
	}
	select {
	case <-c.enough: // of one who had gone on already
	default:
	}
	c.want = c.last - leaders
	mu.Unlock()
	_ = c.sched.Wait(context.Background(), min(c.took/4, most), c.enough)
	mu.Lock()
	c.want = 0
}

// Now is the time of its clock.
func (c *Company) Now() time.Time { return c.sched.Now() }

// Served tells of a group that began then.
func (c *Company) Served(n int, began time.Time) { c.last, c.took = n, c.sched.Now().Sub(began) }
