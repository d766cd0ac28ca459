package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/internal/sched"
)

// Config holds the numbers of a Worker. A zero field means its default.
type Config struct {
	// Decode reads a message; nil is [Decode]. What it refuses is a dead letter:
	// its error is the letter's Message. Only the reason of [Decode] is logged
	// too, for another decoder may quote the text.
	Decode func([]byte) (Record, error)

	Concurrency int // writes on their way to the service at one time; 8
	// InHand is how many deliveries Demand lets a source give out at a time:
	// those that write, and those that wait for their key, for an event or for
	// a hold to end; 8 for each of Concurrency.
	InHand int
	// Patience is the longest a delivery is kept before it is returned; 10 min.
	// It has to be below the broker's own limit (RabbitMQ's is 30 minutes).
	Patience time.Duration

	ProbeEvery time.Duration // first wait between the probes of a hold; 5 min, doubling
	ProbeMost  time.Duration // longest wait between them; 1 h

	// RetryBase and RetryMost bound the wait before a delivery that the service
	// gave no wait for: 5 s at the first delivery, doubling to 5 min, with
	// jitter.
	RetryBase, RetryMost time.Duration

	// Watcher, if set, lets an inferred write be acknowledged on its receipt.
	// Without one it is acknowledged when its event has SUCCEEDED.
	Watcher Watcher

	// Logger tells of holds, dead letters, redrives and returns; nil is silent.
	// No key and no memory text is in it.
	Logger *slog.Logger

	// Scheduler is for this module's own simulations: the type is internal.
	Scheduler sched.Scheduler
}

// Delivery is one message as a broker hands it out.
type Delivery struct {
	Data    []byte
	Source  string // where it came from, in the broker's terms; kept in a dead letter
	Attempt int    // how often it was delivered, this time included; 0 when not known

	// Extend tells the broker that the delivery is still in work. It is called
	// every ExtendEvery from the beginning to the end of Handle, and never
	// after.
	Extend      func(context.Context) error
	ExtendEvery time.Duration
}

// Outcome is what to do with a delivery. Action is Ack, RetryAfter, DeadLetter,
// or one of Hold and GiveBack, which are both a return that must not count.
type Outcome struct {
	memwrite.Verdict
	Identity string
	Ended    Ending      // with Ack, how the write ended; empty after Do
	Dead     *DeadLetter // with DeadLetter
	Err      error       // what the client said, if it said something
}

// Ending is how a write ended that is acknowledged.
type Ending string

// The endings. All of them are definite.
const (
	Stored   Ending = "stored"    // a memory is there, or a turn was taken
	Already  Ending = "already"   // the record was known before
	Skipped  Ending = "skipped"   // nothing worth storing, or not a user's turn
	NoMemory Ending = "no_memory" // the event succeeded without a memory
	Watched  Ending = "watched"   // accepted, and with Config.Watcher now
)

// Worker handles deliveries. It is safe for concurrent use.
type Worker struct {
	client *memwrite.Client
	cfg    Config
	sched  sched.Scheduler
	hold   hold
	lanes  lanes
	slots  slots
	attend attendant
	counts counters

	ownDecode bool // cfg.Decode is Decode, whose errors quote no text

	soft, hard       context.Context // ended by Close: waits first, writes last
	endSoft, endHard context.CancelFunc
	mu               sync.Mutex
	closing          bool
	inHand           int
	changed          chan struct{} // closed and replaced when inHand falls
	closed           chan struct{}
}

// New makes a Worker. The client should be the process's one client.
func New(client *memwrite.Client, cfg Config) (*Worker, error) {
	if client == nil {
		return nil, errors.New("worker: the client is nil")
	}
	for name, d := range map[string]time.Duration{
		"Patience": cfg.Patience, "ProbeEvery": cfg.ProbeEvery, "ProbeMost": cfg.ProbeMost,
		"RetryBase": cfg.RetryBase, "RetryMost": cfg.RetryMost,
	} {
		if d < 0 {
			return nil, errors.New("worker: " + name + " is negative")
		}
	}
	if cfg.Concurrency < 0 || cfg.InHand < 0 {
		return nil, errors.New("worker: Concurrency or InHand is negative")
	}
	own := cfg.Decode == nil
	if own {
		cfg.Decode = Decode
	}
	if cfg.Scheduler == nil {
		cfg.Scheduler = sched.Real()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	orElse(&cfg.Concurrency, 8)
	orElse(&cfg.InHand, 8*cfg.Concurrency)
	orElse(&cfg.Patience, 10*time.Minute)
	orElse(&cfg.ProbeEvery, 5*time.Minute)
	orElse(&cfg.ProbeMost, max(time.Hour, cfg.ProbeEvery))
	orElse(&cfg.RetryBase, 5*time.Second)
	orElse(&cfg.RetryMost, max(5*time.Minute, cfg.RetryBase))
	w := &Worker{
		client: client, cfg: cfg, sched: cfg.Scheduler, ownDecode: own,
		hold:   hold{sched: cfg.Scheduler, first: cfg.ProbeEvery, most: cfg.ProbeMost, waiters: map[chan struct{}]struct{}{}},
		lanes:  lanes{sched: cfg.Scheduler, keys: map[string][]chan struct{}{}},
		attend: attendant{client: client, log: cfg.Logger, redrives: map[string]int{}},
		slots:  slots{sched: cfg.Scheduler, total: cfg.Concurrency},

		changed: make(chan struct{}), closed: make(chan struct{}),
	}
	w.soft, w.endSoft = context.WithCancel(context.Background())
	w.hard, w.endHard = context.WithCancel(context.Background())
	return w, nil
}

func orElse[T int | time.Duration](v *T, def T) {
	if *v == 0 {
		*v = def
	}
}

// Patience is the longest that Handle keeps a delivery.
func (w *Worker) Patience() time.Duration { return w.cfg.Patience }

// InHand is how many deliveries a source should give out at most.
func (w *Worker) InHand() int { return w.cfg.InHand }

// Demand waits until the source may give out more messages, and says how many
// at most. While the worker holds it waits until a probe is due, and says one.
// Its error is the context's cause, or ErrClosed.
func (w *Worker) Demand(ctx context.Context) (int, error) {
	ctx, cancel := w.until(ctx, w.soft)
	defer cancel()
	for {
		if ctx.Err() != nil {
			return 0, w.closedOr(context.Cause(ctx))
		}
		held, err := w.hold.due(ctx)
		if err != nil {
			return 0, w.closedOr(err)
		}
		w.mu.Lock()
		free, changed := w.cfg.InHand-w.inHand, w.changed
		w.mu.Unlock()
		switch {
		case free > 0 && held:
			return 1, nil
		case free > 0:
			return free, nil
		}
		if err := w.sched.Wait(ctx, sched.Forever, changed); err != nil {
			return 0, w.closedOr(err)
		}
	}
}

// ErrClosed is what Demand answers after Close.
var ErrClosed = errors.New("worker: closed")

func (w *Worker) closedOr(err error) error {
	if w.soft.Err() != nil {
		return ErrClosed
	}
	return err
}

// Close ends the worker: deliveries that wait are given back at once, writes on
// their way may finish until ctx ends and are given back then. It returns when
// every Handle has returned; its error says that ctx ended first. What was
// given back is written by whoever gets it next, under the same identity.
// A second call waits as well.
func (w *Worker) Close(ctx context.Context) error {
	w.mu.Lock()
	if !w.closing {
		w.closing = true
		if w.inHand == 0 {
			close(w.closed)
		}
	}
	w.mu.Unlock()
	w.endSoft()
	err := w.sched.Wait(ctx, sched.Forever, w.closed)
	if err != nil {
		w.endHard()
		_ = w.sched.Wait(context.WithoutCancel(ctx), sched.Forever, w.closed)
	}
	w.endHard()
	return err
}

func (w *Worker) enter() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closing {
		return false
	}
	w.inHand++
	return true
}

func (w *Worker) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inHand--
	close(w.changed)
	w.changed = make(chan struct{})
	if w.closing && w.inHand == 0 {
		close(w.closed)
	}
}

// until is ctx that also ends with other.
func (w *Worker) until(ctx, other context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if other.Err() != nil {
		cancel() // AfterFunc would only do so soon
	}
	stop := context.AfterFunc(other, cancel)
	return ctx, func() { stop(); cancel() }
}
