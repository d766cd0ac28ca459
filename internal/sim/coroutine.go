package sim

import (
	"fmt"
	"iter"
	"runtime/debug"
)

// coroutine carries one runnable after the other: a stack that has grown stays
// so.
type coroutine struct {
	f      func()
	ended  bool
	resume func() (struct{}, bool)
	yield  func(struct{}) bool
}

// pool is coroutines that carry nothing. It belongs to one worker.
type pool struct{ free []*coroutine }

func (p *pool) take(f func()) *coroutine {
	if n := len(p.free); n > 0 {
		c := p.free[n-1]
		p.free = p.free[:n-1]
		c.f, c.ended = f, false
		return c
	}
	c := &coroutine{f: f}
	c.resume, _ = iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			if v := recover(); v != nil { // iter.Pull takes a panic along, and leaves its stack behind
				panic(fmt.Sprintf("%v\n%s", v, debug.Stack()))
			}
		}()
		c.yield = yield
		for {
			c.f()
			c.f, c.ended = nil, true
			if !yield(struct{}{}) {
				return
			}
		}
	})
	return c
}
