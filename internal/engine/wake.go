package engine

import (
	"slices"
	"sync"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
)

// local is wake-ups inside one process.
type local struct {
	mu   sync.RWMutex
	next int
	to   map[int]func(string)
}

func (l *local) Announce(id string) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, f := range l.to {
		f(id)
	}
}

func (l *local) Listen(f func(string)) func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.to == nil {
		l.to = map[int]func(string){}
	}
	n := l.next
	l.next++
	l.to[n] = f
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.to, n)
	}
}

// awake is what an announcement does here: one more look for due work, and a
// look by whoever waits for this task.
func (e *Engine) awake(id string) {
	e.nudge()
	e.waiters.wake(id)
}

func (e *Engine) nudge() {
	select {
	case e.dispatch <- struct{}{}:
	default: // a look is on its way and will see this too
	}
}

// announceNew tells runners of a task that was accepted or redriven. This is
// the delivery that may be lost, doubled or late.
func (e *Engine) announceNew(t protocol.Task) {
	switch f := e.at(protocol.Wakeup, t); f.Act {
	case protocol.Lose:
		return
	case protocol.Double:
		e.wakeups.Announce(t.ID)
	case protocol.Delay:
		e.spawn(func() {
			if sched.Sleep(e.ctx, e.sched, time.Duration(f.Delay)) == nil {
				e.wakeups.Announce(t.ID)
			}
		})
		return
	}
	e.wakeups.Announce(t.ID)
}

func (e *Engine) at(p protocol.Point, t protocol.Task) protocol.Fault {
	if e.faults == nil {
		return protocol.Fault{}
	}
	return e.faults.At(p, t)
}

// waiters are those who wait for a task to move, each with one buffered signal.
type waiters struct {
	mu sync.Mutex
	by map[string][]chan struct{}
}

func (w *waiters) add(id string) chan struct{} {
	ch := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by == nil {
		w.by = map[string][]chan struct{}{}
	}
	w.by[id] = append(w.by[id], ch)
	return ch
}

func (w *waiters) remove(id string, ch chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := slices.DeleteFunc(w.by[id], func(c chan struct{}) bool { return c == ch })
	if len(rest) == 0 {
		delete(w.by, id)
		return
	}
	w.by[id] = rest
}

func (w *waiters) wake(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ch := range w.by[id] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

func (w *waiters) wakeAll() {
	w.mu.Lock()
	ids := make([]string, 0, len(w.by))
	for id := range w.by {
		ids = append(ids, id)
	}
	w.mu.Unlock()
	for _, id := range ids {
		w.wake(id)
	}
}
