package protocol

import "context"

// Input is what an extractor reads.
type Input struct {
	Kind     Kind
	Scope    Scope
	Text     string
	Messages []Message
	// Metadata, dates and speaker are the caller's; they are not evidence.
	Speaker, OccurredAt, EventDate string
}

// Extractor turns input into facts. No fact is a success. An error that is a
// *Failure carries its class; a deadline counts as ProviderTimeout and any
// other error as Infrastructure. Extract should end soon after ctx does, and
// is abandoned if it does not.
type Extractor interface {
	Extract(ctx context.Context, in Input) ([]Fact, error)
}

// Prompt is what an Extractor may say besides: that it answers out of itself, at
// once, and waits for nobody. It is then asked without a goroutine of its own.
type Prompt interface {
	Prompt() bool
}

// ExtractorFunc is a function as an Extractor.
type ExtractorFunc func(ctx context.Context, in Input) ([]Fact, error)

func (f ExtractorFunc) Extract(ctx context.Context, in Input) ([]Fact, error) { return f(ctx, in) }

// Comparer compares texts by meaning.
type Comparer interface {
	// Same says that two facts of one type and key are one. It is a filter:
	// best effort.
	Same(a, b string) bool
	// Score is how near a text is to a query, from 0 to 1.
	Score(query, text string) float64
}

// Projector makes records findable, and those that are forgotten unfindable. It
// may be called again for records it had: it must then change nothing. A nil
// Projector always succeeds.
type Projector interface {
	Project(ctx context.Context, rs []Record) error
}

// Searcher is what a Projector may be besides: an index that finds again what
// was projected. It holds copies that may be out of date; whether a record may
// be seen is read from the Store.
type Searcher interface {
	// Nearest gives the n records of a scope that are nearest to a query, as the
	// Comparer scores them; more or fewer is allowed. No record it leaves out
	// scores above rest: at 0 there is none.
	Nearest(ctx context.Context, q RecordQuery, query string, n int) (near []Near, rest float64, err error)
}

// Near is a record of an index with its nearness to a query, from 0 to 1.
type Near struct {
	ID    string
	Score float64
}

// Wakeups tell runners that there is something to do, and waiters that a task
// moved. They carry no truth: one may be lost, doubled, late or out of order,
// and every task still ends.
type Wakeups interface {
	// Announce tells the listeners of other processes. It does not block and
	// cannot fail. Who announces knows already; hearing it again does no harm.
	Announce(taskID string)
	// Listen calls f for each announcement until stop. f does not block. An
	// empty id says that some may have been missed.
	Listen(f func(taskID string)) (stop func())
}

// Point names a place where a fault may happen.
type Point string

const (
	BeforeInference Point = "before_inference"
	AfterInference  Point = "after_inference"
	AfterPlan       Point = "after_plan"
	AfterCommit     Point = "after_commit"
	BeforeFinish    Point = "before_finish"
	Inference       Point = "inference"  // Fail: the provider's answer
	Projecting      Point = "projection" // Fail: the projection
	Wakeup          Point = "wakeup"     // Lose, Double, Delay
	Arrival         Point = "arrival"    // Late
)

// Act is what goes wrong.
type Act int

const (
	Nothing  Act = iota
	Kill         // the runner is gone without a word; its lease runs out
	Freeze       // the runner stands still, heartbeat too, until Release, and then goes on
	FailWith     // Failure is what happened
	Expire       // the lease is over at once, and the runner does not know
	Lose         // of a wake-up
	Double
	Delay
	Late // of a command: whether it is recognised is judged as if it came Delay later
)

// Fault is one act with what it needs.
type Fault struct {
	Act     Act
	Failure *Failure
	Release <-chan struct{} // closed by whoever armed a Freeze
	Delay   int64           // nanoseconds
}

// Faults decides what goes wrong; nil never does. At may be called from many
// goroutines.
type Faults interface {
	At(p Point, t Task) Fault
}

// Quiet is what Faults may say besides: that nothing is going to go wrong on
// this task's way from a wake-up to its end, its inference apart. Steps are then
// written together that would else be written one by one, so that something can
// happen in between.
type Quiet interface {
	Quiet(taskID string) bool
}
