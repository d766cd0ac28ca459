package engine

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// errSlow is the cause an extractor's context ends with when its time is up.
var errSlow = errors.New("engine: the extractor took too long")

// infer asks the extractor. One that does not end with its context is left
// behind: the runner goes on without it and its answer is thrown away.
func (r *runner) infer() ([]protocol.Fact, error) {
	t := r.now()
	if f := r.e.at(protocol.Inference, t); f.Act == protocol.FailWith {
		return nil, f.Failure
	}
	ctx, cancel := context.WithCancelCause(r.ctx)
	defer cancel(nil)
	var facts []protocol.Fact
	var err error
	done := make(chan struct{})
	// Not one of the engine's own goroutines: Close does not wait for an
	// extractor that ignores its context.
	r.e.sched.Go(func() {
		defer close(done)
		defer func() {
			if recover() != nil { // what it says may hold the input: it is not repeated
				facts, err = nil, protocol.Fail(protocol.Infrastructure, "the extractor panicked")
			}
		}()
		facts, err = r.e.extract.Extract(ctx, protocol.InputOf(t))
	})
	if werr := r.e.sched.Wait(r.ctx, r.e.limits.InferenceTimeout, done); werr != nil {
		cancel(errSlow)
		return nil, classify(r.ctx, errSlow)
	}
	if err != nil {
		return nil, classify(r.ctx, err)
	}
	return clean(facts)
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
	return judged, nil
}
