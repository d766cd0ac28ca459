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
	begun bool
	facts []protocol.Fact
	err   error

	aside  bool          // in a goroutine of its own, which these are of
	done   chan struct{} // closed when facts or err are there
	until  time.Time
	cancel context.CancelCauseFunc
}

// infer asks the extractor, once. One that does not end with its context is
// left behind: the runner goes on without it and its answer is thrown away.
func (r *runner) infer(a *ahead) ([]protocol.Fact, error) {
	inf := &r.inferring
	if !inf.begun {
		t := r.now(a)
		if f := r.e.at(protocol.Inference, t); f.Act == protocol.FailWith {
			return nil, f.Failure
		}
		r.ask(protocol.InputOf(t))
	}
	if inf.aside {
		if err := r.attend(inf); err != nil {
			return nil, err
		}
	}
	if inf.err != nil {
		return nil, classify(r.ctx, inf.err)
	}
	return clean(inf.facts)
}

// attend waits for an extractor that runs aside, as long as both it and the
// caller of an inline run have time.
func (r *runner) attend(inf *inference) error {
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
			return errDetached
		}
		inf.cancel(errSlow)
		return classify(r.ctx, errSlow)
	}
	inf.cancel(nil)
	return nil
}

// ask begins the inference. An extractor that is prompt has answered then.
func (r *runner) ask(in protocol.Input) {
	inf := &r.inferring
	if !r.e.prompt() {
		r.askAside(in)
		return
	}
	inf.begun = true
	inf.facts, inf.err = r.extract(r.ctx, in)
}

// askAside lets the extractor run in a goroutine that is not one of the engine's
// own: Close does not wait for one that ignores its context.
func (r *runner) askAside(in protocol.Input) {
	inf := &r.inferring
	ctx, cancel := context.WithCancelCause(r.ctx)
	inf.begun, inf.aside, inf.done, inf.cancel = true, true, make(chan struct{}), cancel
	inf.until = r.e.sched.Now().Add(r.e.limits.InferenceTimeout)
	r.e.sched.Go(func() {
		defer close(inf.done)
		inf.facts, inf.err = r.extract(ctx, in)
	})
}

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
func (r *runner) filter(a *ahead, facts []protocol.Fact) ([]protocol.Judgment, error) {
	judged := make([]protocol.Judgment, len(facts))
	t := r.now(a)
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
