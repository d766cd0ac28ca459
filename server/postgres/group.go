package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/server/internal/company"
)

// mostAgain bounds how often one is put into another batch.
const mostAgain = 100

var errBusy = errors.New("postgres: what holds the identity moved at every look")

// size bounds a batch.
const size = 512

// group commits what many callers want together: whoever comes while a batch is
// on its way is in the next one. One batch is on its way at a time: a second
// would wait for the rows that every batch of a workspace locks, and cost as much
// again as the first.
type group[In, Out any] struct {
	run   func(context.Context, []In) []result[Out]
	spawn func(func())

	mu      sync.Mutex
	company *company.Company
	waiting []*call[In, Out]
	flying  bool
	closed  bool
	idle    chan struct{} // closed when it is closed and nothing flies
}

// result is what became of one of a batch.
type result[Out any] struct {
	out   Out
	err   error
	again bool // it has to be judged anew, in another batch
}

type call[In, Out any] struct {
	in    In
	tries int
	got   result[Out]
	done  chan struct{} // closed when got is there
}

func newGroup[In, Out any](s sched.Scheduler, run func(context.Context, []In) []result[Out]) *group[In, Out] {
	return &group[In, Out]{run: run, spawn: s.Go, company: company.New(s, 4), idle: make(chan struct{})}
}

// do hands one in and waits for what becomes of it. A caller whose ctx ends
// while its batch is on its way does not learn it; one that still waits takes
// its wish back.
func (g *group[In, Out]) do(ctx context.Context, in In) (Out, error) {
	c := &call[In, Out]{in: in, done: make(chan struct{})}
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return c.got.out, errClosed
	}
	g.waiting = append(g.waiting, c)
	g.company.Came(len(g.waiting))
	if !g.flying {
		g.flying = true
		g.spawn(g.loop)
	}
	g.mu.Unlock()
	select {
	case <-c.done:
		return c.got.out, c.got.err
	case <-ctx.Done():
		g.leave(c)
		var none Out
		return none, context.Cause(ctx)
	}
}

// loop serves batches until nobody waits.
func (g *group[In, Out]) loop() {
	for {
		g.mu.Lock()
		if len(g.waiting) > 0 {
			g.company.Gather(&g.mu, 0, len(g.waiting))
		}
		n := min(size, len(g.waiting))
		if n == 0 {
			g.flying = false
			g.settle()
			g.mu.Unlock()
			return
		}
		calls := append([]*call[In, Out](nil), g.waiting[:n]...)
		g.waiting = append(g.waiting[:0], g.waiting[n:]...)
		began := g.company.Now()
		g.mu.Unlock()
		g.batch(calls, began)
	}
}

func (g *group[In, Out]) batch(calls []*call[In, Out], began time.Time) {
	ins := make([]In, len(calls))
	for i, c := range calls {
		ins[i] = c.in
	}
	var again []*call[In, Out]
	outs := g.run(context.Background(), ins)
	g.mu.Lock()
	g.company.Served(len(calls), began)
	g.mu.Unlock()
	for i, got := range outs {
		c := calls[i]
		if got.again && c.tries < mostAgain {
			c.tries++
			again = append(again, c)
			continue
		}
		if c.got = got; got.again {
			c.got.err = errBusy
		}
		close(c.done)
	}
	if len(again) > 0 {
		g.mu.Lock()
		g.waiting = append(again, g.waiting...)
		g.mu.Unlock()
	}
}

// leave takes a caller out that gave up.
func (g *group[In, Out]) leave(c *call[In, Out]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, w := range g.waiting {
		if w == c {
			g.waiting = append(g.waiting[:i], g.waiting[i+1:]...)
			return
		}
	}
}

// close refuses what comes and waits for what is on its way.
func (g *group[In, Out]) close() {
	g.mu.Lock()
	if !g.closed {
		g.closed = true
		g.settle()
	}
	g.mu.Unlock()
	<-g.idle
}

// settle is called with mu held.
func (g *group[In, Out]) settle() {
	if g.closed && !g.flying {
		close(g.idle)
	}
}
