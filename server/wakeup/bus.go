package wakeup

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
)

// most is how many announcements wait to be sent to other nodes. Those beyond
// are dropped: nobody is to wait for a broker that is away.
const most = 4096

// Any is announced when wake-ups may have been missed: look for everything.
const Any = ""

// Broker reaches the other nodes.
type Broker interface {
	// Send passes messages on, once or not at all.
	Send(ctx context.Context, messages []string) error
	// Receive calls ready whenever the subscription begins (messages before it
	// were missed) and f for each message, until ctx is done or the connection
	// is lost.
	Receive(ctx context.Context, ready func(), f func(message string)) error
	Close()
}

// Bus is protocol.Wakeups for one node: what it announces is heard by the nodes
// of the same broker, and not by itself, which knows already.
type Bus struct {
	broker  Broker
	sched   sched.Scheduler
	failed  func(error)
	origin  string // whose messages are our own
	cancel  context.CancelFunc
	running sync.WaitGroup
	signal  chan struct{}

	mu      sync.RWMutex
	to      map[int]func(string)
	next    int
	pending map[string]bool
}

var _ protocol.Wakeups = (*Bus)(nil)

// New makes a bus. failed, which may be nil, is told of a broker that is away;
// the bus goes on trying.
func New(s sched.Scheduler, broker Broker, failed func(error)) *Bus {
	raw := make([]byte, 6)
	_, _ = rand.Read(raw)
	b := &Bus{broker: broker, sched: s, failed: failed, origin: hex.EncodeToString(raw), signal: make(chan struct{}, 1),
		to: map[int]func(string){}, pending: map[string]bool{}}
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	b.running.Add(2)
	s.Go(func() { defer b.running.Done(); b.send(ctx) })
	s.Go(func() { defer b.running.Done(); b.receive(ctx) })
	return b
}

// Announce leaves it to the sender.
func (b *Bus) Announce(task string) {
	b.mu.Lock()
	if len(b.pending) < most {
		b.pending[task] = true // one that waits already covers this one
	}
	b.mu.Unlock()
	select {
	case b.signal <- struct{}{}:
	default:
	}
}

// Listen calls f for each announcement until stop. f does not block.
func (b *Bus) Listen(f func(string)) (stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.next
	b.next++
	b.to[n] = f
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.to, n)
	}
}

// Close ends the connection. What was not sent yet is dropped.
func (b *Bus) Close() {
	b.cancel()
	b.running.Wait()
	b.broker.Close()
}

func (b *Bus) deliver(task string) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, f := range b.to {
		f(task)
	}
}

// send passes on what has come together since the last time.
func (b *Bus) send(ctx context.Context) {
	var pause retries
	for b.sched.Wait(ctx, sched.Forever, b.signal) == nil {
		b.mu.Lock()
		ids := slices.Sorted(maps.Keys(b.pending))
		clear(b.pending)
		b.mu.Unlock()
		if len(ids) == 0 {
			continue
		}
		for i := range ids {
			ids[i] = b.origin + " " + ids[i]
		}
		if err := b.broker.Send(ctx, ids); err != nil {
			b.tell(ctx, err)
			_ = sched.Sleep(ctx, b.sched, pause.next(b.sched))
			continue
		}
		pause = 0
	}
}

// receive keeps a subscription. Each time it begins everybody looks once, for
// what was missed before.
func (b *Bus) receive(ctx context.Context) {
	var pause retries
	for ctx.Err() == nil {
		err := b.broker.Receive(ctx, func() { pause = 0; b.deliver(Any) }, func(m string) {
			if origin, task, ok := strings.Cut(m, " "); ok && origin != b.origin {
				b.deliver(task)
			}
		})
		b.tell(ctx, err)
		// Also after an end without an error: a connection that ends at once,
		// each time, must not become a busy loop.
		_ = sched.Sleep(ctx, b.sched, pause.next(b.sched))
	}
}

func (b *Bus) tell(ctx context.Context, err error) {
	if err != nil && b.failed != nil && ctx.Err() == nil {
		b.failed(err)
	}
}

// retries is the wait before the next connection: 100 ms doubling to 5 s.
type retries int

func (r *retries) next(s sched.Scheduler) time.Duration {
	d := min(100*time.Millisecond<<min(*r, 10), 5*time.Second)
	*r++
	return d/2 + sched.Jitter(s, d/2)
}
