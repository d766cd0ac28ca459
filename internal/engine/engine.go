// Package engine is the loops around the protocol: runners, repair, wake-ups
// and long polls. It decides nothing: what a step writes is decided in package
// protocol and kept by a Store.
package engine

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
)

// ErrClosed is what a call on a closed engine returns.
var ErrClosed = errors.New("engine: closed")

// Limits are the engine's numbers; zero takes the default.
type Limits struct {
	Runners     int           // tasks run at once; 8
	MaxAttempts int           // 5
	Lease       time.Duration // 30 s
	Heartbeat   time.Duration // a third of the lease
	BackOff     protocol.BackOff
	RepairEvery time.Duration // 5 s
	// InferenceTimeout bounds one call of the extractor; 60 s.
	InferenceTimeout time.Duration
}

func (l Limits) withDefaults() Limits {
	l.Runners = cmp.Or(l.Runners, 8)
	l.MaxAttempts = cmp.Or(l.MaxAttempts, 5)
	l.Lease = cmp.Or(l.Lease, 30*time.Second)
	l.Heartbeat = cmp.Or(l.Heartbeat, l.Lease/3)
	l.BackOff.Base = cmp.Or(l.BackOff.Base, time.Second)
	l.BackOff.Cap = cmp.Or(l.BackOff.Cap, time.Minute)
	l.RepairEvery = cmp.Or(l.RepairEvery, 5*time.Second)
	l.InferenceTimeout = cmp.Or(l.InferenceTimeout, time.Minute)
	return l
}

// Config is what an engine is made of. Store, Scheduler, Extractor and Comparer
// are needed; the rest may be nil.
type Config struct {
	Store     protocol.Store
	Scheduler sched.Scheduler
	Extractor protocol.Extractor
	Comparer  protocol.Comparer
	Projector protocol.Projector
	Wakeups   protocol.Wakeups // nil: inside this process
	Faults    protocol.Faults
	Limits    Limits
	// OnError is told of a store that failed; the loop goes on. The error holds
	// no memory text.
	OnError func(error)
	// Observe is told of every step, in the goroutine that made it; it must not
	// block.
	Observe func(protocol.Step)
}

// Engine accepts commands and carries them to their end.
type Engine struct {
	store    protocol.Store
	sched    sched.Scheduler
	extract  protocol.Extractor
	compare  protocol.Comparer
	project  protocol.Projector
	wakeups  protocol.Wakeups // nil: nobody else is to be told
	faults   protocol.Faults
	limits   Limits
	onError  func(error)
	observe  func(protocol.Step)
	name     string
	dispatch chan struct{} // one buffered signal: look for due work
	quiet    chan struct{} // one buffered signal: a runner ended while draining
	waiters  waiters

	mu       sync.Mutex
	busy     int  // claims out and runs going on
	behind   bool // tasks may be due that no runner was free for
	running  []*runner
	spare    sync.Pool // of runners; see reuse
	started  bool
	closed   bool
	draining bool
	alive    int           // goroutines of the engine
	idle     chan struct{} // closed when it is closed and none is left
	ctx      context.Context
	cancel   context.CancelCauseFunc
	stop     func() // of the wake-up subscription
}

// New makes an engine; Start lets it run. Before that it accepts and reads.
func New(c Config) *Engine {
	e := &Engine{store: c.Store, sched: c.Scheduler, extract: c.Extractor, compare: c.Comparer, project: c.Projector,
		wakeups: c.Wakeups, faults: c.Faults, limits: c.Limits.withDefaults(), onError: c.OnError, observe: c.Observe, dispatch: make(chan struct{}, 1), quiet: make(chan struct{}, 1), idle: make(chan struct{})}
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
	e.name = e.random("runner_", 8)
	e.stop = func() {}
	if e.wakeups != nil {
		e.stop = e.wakeups.Listen(e.awake)
	}
	return e
}

// Start begins to run tasks, those a former process left included. A second
// call does nothing.
func (e *Engine) Start() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.started || e.closed {
		return
	}
	e.started = true
	e.launch(e.loop)
	e.launch(e.beats)
}

// Close stops runners where they stand, as a crash would, waits for them and
// ends every wait. Their tasks are taken up again when the lease is over, or at
// once if Drain came first. A second call waits as well. The store stays open.
func (e *Engine) Close() {
	e.mu.Lock()
	first := !e.closed
	if e.closed = true; first {
		e.settle()
	}
	e.mu.Unlock()
	if first {
		e.cancel(ErrClosed)
		e.waiters.wakeAll()
		e.stop()
	}
	_ = e.sched.Wait(context.Background(), sched.Forever, e.idle)
}

// spawn runs f as one of the engine's goroutines, unless it is closed.
func (e *Engine) spawn(f func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.launch(f)
	return true
}

// launch is called with mu held and the engine not closed.
func (e *Engine) launch(f func()) {
	e.alive++
	e.sched.Go(func() { defer e.leave(); f() })
}

// enter counts the caller's goroutine as one of the engine's until leave, unless
// the engine is closed.
func (e *Engine) enter() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.alive++
	return true
}

func (e *Engine) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.alive--
	e.settle()
}

// settle is called with mu held: it lets Close go once nothing runs. A closed
// engine launches nothing, so this happens once.
func (e *Engine) settle() {
	if e.closed && e.alive == 0 {
		close(e.idle)
	}
}

// random is a name of so many random bytes, at most 16, in hex behind a prefix.
func (e *Engine) random(prefix string, bytes int) string {
	raw := e.noise(bytes)
	return string(hex.AppendEncode(append(make([]byte, 0, 64), prefix...), raw[:bytes]))
}

func (e *Engine) noise(bytes int) (raw [16]byte) {
	for at := 0; at < bytes; at += 8 {
		binary.LittleEndian.PutUint64(raw[at:], e.sched.Uint64())
	}
	return raw
}

// taskID begins with the time in microseconds, in 56 bits, and is random behind
// that: tasks that are accepted together lie together in the index of a database.
func (e *Engine) taskID() string {
	raw := e.noise(16)
	var at [8]byte
	binary.BigEndian.PutUint64(at[:], uint64(e.sched.Now().UnixMicro()))
	copy(raw[:7], at[1:])
	return string(hex.AppendEncode(append(make([]byte, 0, 37), "task_"...), raw[:]))
}

func (e *Engine) failed(err error) {
	if err != nil && e.onError != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, ErrClosed) {
		e.onError(err)
	}
}
