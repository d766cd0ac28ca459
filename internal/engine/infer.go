package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
)

// errSlow is the cause an extractor's context ends with when its time is up.
var errSlow = errors.New("engine: the extractor took too long")

// inference is one call of the extractor.
type inference struct {
	done   chan struct{} // nil: not begun
	until  time.Time
	cancel context.CancelCauseFunc
	facts  []protocol.Fact
	err    error
}

// infer asks the extractor, once. One that does not end with its context is
// left behind: the runner goes on without it and its answer is thrown away.
func (r *runner) infer() ([]protocol.Fact, error) {
	inf := &r.inferring
	if inf.done == nil {
		t := r.now()
		if f := r.e.at(protocol.Inference, t); f.Act == protocol.FailWith {
			return nil, f.Failure
		}
		r.ask(protocol.InputOf(t))
	}
	left := inf.until.Sub(r.e.sched.Now())
	patient := !r.inline
	if r.inline {
		if p := r.patience.Sub(r.e.sched.Now()); p >= left {
			patient = true
		} else {
			left = p
		}
	}
	if err := r.e.sched.Wait(r.ctx, max(left, 0), inf.done); err != nil {
		if !patient && errors.Is(err, sched.ErrElapsed) {
			return nil, errDetached
		}
		inf.cancel(errSlow)
		return nil, classify(r.ctx, errSlow)
	}
	inf.cancel(nil)
	if inf.err != nil {
		return nil, classify(r.ctx, inf.err)
	}
	return clean(inf.facts)
}

// ask begins the inference. An extractor that is prompt has answered then.
func (r *runner) ask(in protocol.Input) {
	inf := &r.inferring
	inf.until = r.e.sched.Now().Add(r.e.limits.InferenceTimeout)
	if r.e.prompt() {
		inf.done, inf.cancel = answered, func(error) {}
		inf.facts, inf.err = r.extract(r.ctx, in)
		return
	}
	ctx, cancel := context.WithCancelCause(r.ctx)
	inf.done, inf.cancel = make(chan struct{}), cancel
	// Not one of the engine's own goroutines: Close does not wait for an
	// extractor that ignores its context.
	r.e.sched.Go(func() {
		defer close(inf.done)
		inf.facts, inf.err = r.extract(ctx, in)
	})
}

// answered is the done of an inference that is over where it was asked for.
var answered = func() chan struct{} { done := make(chan struct{}); close(done); return done }()

func (r *runner) extract(ctx context.Context, in protocol.Input) (facts []protocol.Fact, err error) {
	defer func() {
		if recover() != nil { // what it says may hold the input: it is not repeated
			facts, err = nil, protocol.Fail(protocol.Infrastructure, "the extractor panicked")
		}
	}()
	return r.e.extract.Extract(ctx, in)
}

// classify gives an extractor's error its class. The text of an unknown error
// is dropped: it may hold what was read.
func classify(ctx context.Context, err error) error {
	var f *protocol.Failure
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &f):
		return f
	case errors.Is(err, errSlow) || errors.Is(err, context.DeadlineExceeded):
		return protocol.Fail(protocol.ProviderTimeout, "the extractor did not answer in time")
	}
	return protocol.Fail(protocol.Infrastructure, "the extractor is not available")
}

// clean drops what an input says twice and refuses a fact without a text.
func clean(facts []protocol.Fact) ([]protocol.Fact, error) {
	seen := map[protocol.Fact]bool{}
	out := make([]protocol.Fact, 0, len(facts))
	for _, f := range facts {
		if strings.TrimSpace(f.Text) == "" {
			return nil, protocol.Fail(protocol.InvalidOutput, "the extractor gave a fact without a text")
		}
		if !seen[f] {
			seen[f] = true
			out = append(out, f)
		}
	}
	return out, nil
}

// filter judges facts by what is there already of one end user, type and key:
// the oldest record that says the same makes a fact redundant, and a fact that
// is the only one of its key takes the place of those that say something else.
// It is best effort: two tasks that plan at once do not see each other.
// FishMem's keys each are an intent of their own, so it has no filter.
func (r *runner) filter(facts []protocol.Fact) ([]protocol.Judgment, error) {
	judged := make([]protocol.Judgment, len(facts))
	t := r.now()
	if t.Kind.Wire() != protocol.MemorySync || t.Command.KeepSimilar {
		return judged, nil
	}
	for i, f := range facts {
		rs, err := r.e.store.Similar(r.ctx, t.Workspace, protocol.MemorySync, t.Scope, f.Type, f.Key, r.e.sched.Now())
		if err != nil {
			return nil, err
		}
		if j := slices.IndexFunc(rs, func(old protocol.Record) bool { return r.e.compare.Same(f.Text, old.Text) }); j >= 0 {
			judged[i].Existing = &rs[j]
			continue
		}
		for _, old := range rs {
			if f.Replaces {
				judged[i].Supersedes = append(judged[i].Supersedes, old.ID)
			}
		}
	}
	// What the input says again itself is not taken away by the same input.
	for _, j := range judged {
		if j.Existing == nil {
			continue
		}
		for i := range judged {
			judged[i].Supersedes = slices.DeleteFunc(judged[i].Supersedes, func(id string) bool { return id == j.Existing.ID })
		}
	}
	return judged, nil
}
