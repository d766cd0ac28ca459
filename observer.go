package memwrite

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/memwrite/memwrite-go/internal/transport"
)

// Observer sees what a client does. Observe is called from the goroutine of
// the call, also from many at once, and should return quickly.
type Observer interface{ Observe(Observation) }

// ObserverFunc makes a function an Observer.
type ObserverFunc func(Observation)

// Observe calls f.
func (f ObserverFunc) Observe(o Observation) { f(o) }

// ObservationKind names what an Observation tells. New ones may be added.
type ObservationKind string

// The kinds.
const (
	ObserveTryStarted ObservationKind = "try_started"
	ObserveTryDone    ObservationKind = "try_done"
	ObserveRetry      ObservationKind = "retry"
	ObserveGateShut   ObservationKind = "gate_shut"
	ObserveGateOpened ObservationKind = "gate_opened"
	ObservePaused     ObservationKind = "paused"
	ObserveResumed    ObservationKind = "resumed"
	ObserveDrained    ObservationKind = "drained"
	ObserveWaitState  ObservationKind = "wait_state" // a waited event was seen in another state
)

// Observation is one thing worth seeing. It holds no key, no URL, no body.
type Observation struct {
	Kind    ObservationKind
	Time    time.Time
	Service string // "memorysync" or "fishmem"
	Op      string // the method, such as "Add"; empty for gate and pause
	Try     int
	Status  int           // HTTP status; 0 without an answer
	Class   string        // what the try proved, such as "throttled"
	Reason  string        // why, such as "http_503" or "timeout"
	Wait    time.Duration // before the next try, probe or call
	Elapsed time.Duration // of the try
	Probe   bool          // the try tests a shut gate or an ended pause
	Waiting int           // calls behind the gate or pause
	EventID string        // wait_state: the event
	State   EventStatus   // wait_state: its state now

	// Context is the call's, with what a CallObserver put there; nil for gate,
	// pause and wait_state, which belong to no one call.
	Context context.Context
}

// CallObserver is an Observer that follows each call from its beginning to its
// end, as a tracer does. An Observer that has this method too is told by it.
type CallObserver interface {
	Observer
	// ObserveCall is told that a call begins, before anything is sent. The
	// context it returns is the call's from then on. What it adds to header is
	// sent with every try of the call, unless the call has a header of that name
	// itself; it must not hold secrets or memory text.
	// The function it returns is called once, with what the caller gets: nil or
	// an *Error. One call of a method that waits or pages makes many.
	ObserveCall(ctx context.Context, c Call, header http.Header) (context.Context, func(error))
}

// Call is what a CallObserver is told of a call.
type Call struct {
	Service string // "memorysync" or "fishmem"
	Op      string // the method, such as "Add"
	Method  string // of HTTP
}

// watch joins the observer and the logger of a client.
func (c *Client) watch(o Observation) {
	if c.observer != nil {
		c.observer.Observe(o)
	}
	if c.logger == nil {
		return
	}
	level := slog.LevelDebug
	switch o.Kind {
	case ObserveRetry, ObserveGateShut, ObservePaused:
		level = slog.LevelWarn
	case ObserveGateOpened, ObserveResumed:
		level = slog.LevelInfo
	}
	ctx := context.Background()
	if !c.logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.String("service", o.Service)}
	add := func(ok bool, a slog.Attr) {
		if ok {
			attrs = append(attrs, a)
		}
	}
	add(o.Op != "", slog.String("op", o.Op))
	add(o.Try > 0, slog.Int("try", o.Try))
	add(o.Status > 0, slog.Int("status", o.Status))
	add(o.Kind == ObserveTryDone || o.Kind == ObserveRetry, slog.String("class", o.Class))
	add(o.Reason != "", slog.String("reason", o.Reason))
	add(o.Wait > 0, slog.Duration("wait", o.Wait))
	add(o.Elapsed > 0, slog.Duration("elapsed", o.Elapsed))
	add(o.Waiting > 0, slog.Int("waiting", o.Waiting))
	add(o.EventID != "", slog.String("event", o.EventID))
	add(o.State != "", slog.String("state", string(o.State)))
	c.logger.LogAttrs(ctx, level, "memwrite "+string(o.Kind), attrs...)
}

func (c *Client) watching() bool { return c.observer != nil || c.logger != nil }

func (s *service) observe(e transport.Event) {
	s.client.watch(Observation{
		Kind: ObservationKind(e.Kind.String()), Time: e.Time, Service: s.name, Op: e.Op, Try: e.Try,
		Status: e.Status, Class: e.Class.String(), Reason: e.Reason, Wait: e.Wait, Elapsed: e.Elapsed,
		Probe: e.Probe, Waiting: e.Waiting, Context: e.Context,
	})
}
