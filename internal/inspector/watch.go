package inspector

import (
	"sync"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// kept bounds the steps that are remembered; the oldest go first.
const kept = 40_000

// Watch remembers the latest steps of the engine and tells live pages that
// something moved. It is safe for concurrent use.
type Watch struct {
	mu     sync.Mutex
	ring   []remembered
	next   int // where the ring goes on once it is full
	byTask map[string]span
	load   load
	heard  map[chan struct{}]struct{}
}

// remembered is a step and where in the ring its task's next one is; -1: none.
type remembered struct {
	protocol.Step
	later int
}

// span is where in the ring a task's first and last step are.
type span struct{ first, last int }

// NewWatch makes an empty watch.
func NewWatch() *Watch {
	return &Watch{byTask: map[string]span{}, heard: map[chan struct{}]struct{}{}}
}

// Observe takes a step in.
func (w *Watch) Observe(s protocol.Step) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remember(s)
	w.load.add(s)
	for ch := range w.heard {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

func (w *Watch) remember(s protocol.Step) {
	if s.TaskID == "" {
		return
	}
	at := len(w.ring)
	if at < kept {
		w.ring = append(w.ring, remembered{s, -1})
	} else {
		at, w.next = w.next, (w.next+1)%kept
		old := w.ring[at] // the oldest of all, and so the first of its task
		if steps := w.byTask[old.TaskID]; steps.first == steps.last {
			delete(w.byTask, old.TaskID)
		} else {
			steps.first = old.later
			w.byTask[old.TaskID] = steps
		}
		w.ring[at] = remembered{s, -1}
	}
	steps, ok := w.byTask[s.TaskID]
	if ok {
		w.ring[steps.last].later = at
		steps.last = at
	} else {
		steps = span{at, at}
	}
	w.byTask[s.TaskID] = steps
}

// Steps is what is remembered of a task, oldest first.
func (w *Watch) Steps(task string) []protocol.Step {
	w.mu.Lock()
	defer w.mu.Unlock()
	steps, ok := w.byTask[task]
	if !ok {
		return nil
	}
	var out []protocol.Step
	for at := steps.first; at >= 0; at = w.ring[at].later {
		out = append(out, w.ring[at].Step)
	}
	return out
}

// Forget drops everything, as when a server is reset.
func (w *Watch) Forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ring, w.next, w.byTask, w.load = nil, 0, map[string]span{}, load{}
}

// Load is what happened lately, up to now, oldest first.
func (w *Watch) Load(now time.Time) []Slot {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.load.until(now)
}

// listen gives a channel that is signalled when something moved.
func (w *Watch) listen() (ch chan struct{}, stop func()) {
	ch = make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard[ch] = struct{}{}
	return ch, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.heard, ch)
	}
}

// Listeners is how many live pages are open.
func (w *Watch) Listeners() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.heard)
}
