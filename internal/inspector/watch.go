package inspector

import (
	"sync"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

const (
	// kept bounds the steps that are remembered; the oldest go first.
	kept = 40_000
	// blockSize is how many steps lie in one piece. Growing never copies what
	// is there.
	blockSize = 500
)

// Watch remembers the latest steps of the engine and tells live pages that
// something moved. It is safe for concurrent use. Steps come many times a
// write, and somebody asks for those of one now and then: they are kept in the
// order they came, and looked through when somebody asks.
type Watch struct {
	mu    sync.Mutex
	ring  [kept / blockSize][]Seen
	next  int // where in the ring the next step goes
	load  load
	heard map[chan struct{}]struct{}
}

// Seen is what is remembered of a step.
type Seen struct {
	TaskID  string
	Kind    protocol.StepKind
	At      time.Time
	Attempt int
	Class   protocol.Class
	Runner  string
	Waited  time.Duration
}

// NewWatch makes an empty watch.
func NewWatch() *Watch { return &Watch{heard: map[chan struct{}]struct{}{}} }

// Observe takes a step in.
func (w *Watch) Observe(s protocol.Step) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.TaskID != "" {
		w.remember(&s)
	}
	w.load.add(&s)
	for ch := range w.heard {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

func (w *Watch) remember(s *protocol.Step) {
	block := &w.ring[w.next/blockSize]
	if *block == nil {
		*block = make([]Seen, blockSize)
	}
	(*block)[w.next%blockSize] = Seen{s.TaskID, s.Kind, s.At, s.Attempt, s.Class, s.Runner, s.Waited}
	w.next = (w.next + 1) % kept
}

// Steps is what is remembered of a task, oldest first.
func (w *Watch) Steps(task string) []Seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Seen
	look := func(steps []Seen) {
		for n := range steps {
			if steps[n].TaskID == task {
				out = append(out, steps[n])
			}
		}
	}
	// The oldest are behind the newest, in the same block.
	block, at := w.next/blockSize, w.next%blockSize
	if w.ring[block] != nil {
		look(w.ring[block][at:])
	}
	for n := 1; n < len(w.ring); n++ {
		look(w.ring[(block+n)%len(w.ring)])
	}
	if w.ring[block] != nil {
		look(w.ring[block][:at])
	}
	return out
}

// Forget drops everything, as when a server is reset.
func (w *Watch) Forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ring, w.next, w.load = [len(w.ring)][]Seen{}, 0, load{}
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
