package engine

import (
	"slices"
	"sync"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
)

// awake is what an announcement of another process does here: one more look for
// due work, and a look by whoever waits for this task; without a task, by all,
// for some may have been missed.
func (e *Engine) awake(id string) {
	if id == "" {
		e.waiters.wakeAll()
	} else {
		e.waiters.wake(id)
	}
	e.lag()
}

// lag is called when there may be due work: the loop looks for it, and until it
// has, a new task does not go past it.
func (e *Engine) lag() {
	e.mu.Lock()
	e.behind = true
	e.mu.Unlock()
	e.nudge()
}

func (e *Engine) nudge() {
	select {
	case e.dispatch <- struct{}{}:
	default: // a look is on its way and will see this too
	}
}

// moved tells those who wait for a task that it is another now, and the loop if
// there is something to do for it later.
func (e *Engine) moved(t *protocol.Task) {
	e.waiters.moved(t)
	if e.wakeups != nil {
		e.wakeups.Announce(t.ID)
	}
	if _, ok := t.Due(); ok && t.State != protocol.Running {
		e.nudge()
	}
}

// deliver hands a task that was accepted or redriven to a runner: to a free one
// of this process at once, which then claims it, else to whoever comes first.
// This is the delivery that may be lost, doubled or late.
func (e *Engine) deliver(t protocol.Task, w protocol.Workspace) {
	switch f := e.at(protocol.Wakeup, t); f.Act {
	case protocol.Lose:
		return
	case protocol.Double:
		e.announce(t)
	case protocol.Delay:
		e.spawn(func() {
			if sched.Sleep(e.ctx, e.sched, time.Duration(f.Delay)) == nil {
				e.announce(t)
			}
		})
		return
	}
	if !e.take(t, w) {
		e.announce(t)
	}
}

// announce tells the loops of all processes that a task is due.
func (e *Engine) announce(t protocol.Task) {
	e.lag()
	if e.wakeups != nil {
		e.wakeups.Announce(t.ID)
	}
}

func (e *Engine) at(p protocol.Point, t protocol.Task) protocol.Fault {
	if e.faults == nil {
		return protocol.Fault{}
	}
	return e.faults.At(p, t)
}

// calm says that nothing may go wrong on the way of a task.
func (e *Engine) calm(taskID string) bool {
	if e.faults == nil {
		return true
	}
	q, ok := e.faults.(protocol.Quiet)
	return ok && q.Quiet(taskID)
}

// waiters are those who wait for a task to move, each with one buffered signal.
type waiters struct {
	mu sync.Mutex
	by map[string][]*waiter
}

type waiter struct {
	signal chan struct{}
	until  func(protocol.Task) bool
}

func (w *waiters) add(id string, until func(protocol.Task) bool) *waiter {
	x := &waiter{make(chan struct{}, 1), until}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by == nil {
		w.by = map[string][]*waiter{}
	}
	w.by[id] = append(w.by[id], x)
	return x
}

func (w *waiters) remove(id string, x *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := slices.DeleteFunc(w.by[id], func(y *waiter) bool { return x == y })
	if len(rest) == 0 {
		delete(w.by, id)
		return
	}
	w.by[id] = rest
}

func (x *waiter) wake() {
	select {
	case x.signal <- struct{}{}:
	default:
	}
}

// wake lets everybody who waits for a task look at it.
func (w *waiters) wake(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range w.by[id] {
		x.wake()
	}
}

// moved is wake for those to whom it matters what the task is now.
func (w *waiters) moved(t *protocol.Task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range w.by[t.ID] {
		if x.until(*t) {
			x.wake()
		}
	}
}

func (w *waiters) wakeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, xs := range w.by {
		for _, x := range xs {
			x.wake()
		}
	}
}
