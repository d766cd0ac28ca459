package postgres

import (
	"context"
	"errors"
	"sync"
)

// mostAgain bounds how often one is put into another batch.
const mostAgain = 100

var errBusy = errors.New("postgres: what holds the identity moved at every look")

// group commits what many callers want together: whoever comes while a batch is
// on its way is in the next one. Nobody waits for company.
type group[In, Out any] struct {
	run    func(context.Context, []In) []result[Out]
	spawn  func(func())
	size   int // of a batch
	flying int // batches at once

	mu      sync.Mutex
	waiting []*call[In, Out]
	loops   int
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

func newGroup[In, Out any](spawn func(func()), run func(context.Context, []In) []result[Out]) *group[In, Out] {
	return &group[In, Out]{run: run, spawn: spawn, size: 256, flying: 1, idle: make(chan struct{})}
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
	if g.loops < g.flying {
		g.loops++
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
		n := min(g.size, len(g.waiting))
		if n == 0 {
			g.loops--
			g.settle()
			g.mu.Unlock()
			return
		}
		calls := append([]*call[In, Out](nil), g.waiting[:n]...)
		g.waiting = append(g.waiting[:0], g.waiting[n:]...)
		g.mu.Unlock()
		g.batch(calls)
	}
}

func (g *group[In, Out]) batch(calls []*call[In, Out]) {
	ins := make([]In, len(calls))
	for i, c := range calls {
		ins[i] = c.in
	}
	var again []*call[In, Out]
	for i, got := range g.run(context.Background(), ins) {
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
	if g.closed && g.loops == 0 {
		close(g.idle)
	}
}
