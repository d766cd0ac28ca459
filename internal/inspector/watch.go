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
	ring   []protocol.Step
	next   int // where the ring goes on once it is full
	byTask map[string][]protocol.Step
	load   load
	heard  map[chan struct{}]struct{}
}

// NewWatch makes an empty watch.
func NewWatch() *Watch {
	return &Watch{byTask: map[string][]protocol.Step{}, heard: map[chan struct{}]struct{}{}}
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
	if len(w.ring) < kept {
		w.ring = append(w.ring, s)
	} else {
		old := w.ring[w.next].TaskID
		if rest := w.byTask[old][1:]; len(rest) == 0 {
			delete(w.byTask, old)
		} else {
			w.byTask[old] = rest
		}
		w.ring[w.next] = s
		w.next = (w.next + 1) % kept
	}
	w.byTask[s.TaskID] = append(w.byTask[s.TaskID], s)
}

// Steps is what is remembered of a task, oldest first.
func (w *Watch) Steps(task string) []protocol.Step {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]protocol.Step(nil), w.byTask[task]...)
}

// Forget drops everything, as when a server is reset.
func (w *Watch) Forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ring, w.next, w.byTask, w.load = nil, 0, map[string][]protocol.Step{}, load{}
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
