package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/internal/sched"
)

// Handle takes one delivery to its outcome. It returns within Config.Patience,
// and soon after ctx ends; a delivery that is not finished then is given back.
// It may be called from many goroutines.
func (w *Worker) Handle(ctx context.Context, d Delivery) Outcome {
	if !w.enter() {
		return w.settle(d, Outcome{Verdict: memwrite.Verdict{Action: memwrite.GiveBack, Reason: "the worker is closed"}})
	}
	defer w.leave()
	w.counts.delivered.Add(1)
	rec, err := w.cfg.Decode(d.Data)
	ours := w.ownDecode || err == nil // a decoder of somebody else may quote the text
	if err == nil {
		err = rec.check()
	}
	if err != nil {
		out := Outcome{Verdict: memwrite.Verdict{Action: memwrite.DeadLetter, Reason: "the message is not a record"}, Err: err}
		if ours {
			out.Reason += ": " + err.Error()
		}
		out.Dead = deadLetter(d, "", w.sched.Now(), out.Reason, err)
		return w.settle(d, out)
	}
	return w.handle(ctx, d, rec.Identity(), rec.order(), func(r *run) error { return r.write(rec) })
}

// Do is Handle for a program that makes its own calls: write makes them, with
// the delivery's identity, and returns the client's error as it is. Deliveries
// of one order key go one after the other; an empty one is in nobody's way.
func (w *Worker) Do(ctx context.Context, d Delivery, identity, order string, write func(context.Context) error) Outcome {
	if !w.enter() {
		return w.settle(d, Outcome{Verdict: memwrite.Verdict{Action: memwrite.GiveBack, Reason: "the worker is closed"}})
	}
	defer w.leave()
	w.counts.delivered.Add(1)
	return w.handle(ctx, d, identity, order, func(r *run) error {
		err := write(r.writes)
		if memwrite.VerdictOf(err).Action == memwrite.RedriveEvent {
			return w.attend.again(r.writes, err)
		}
		return err
	})
}

func (w *Worker) handle(ctx context.Context, d Delivery, identity, order string, write func(*run) error) Outcome {
	defer w.extend(ctx, d)()
	ctx, cancel := w.sched.WithTimeout(ctx, w.cfg.Patience, context.DeadlineExceeded)
	defer cancel()
	ctx, free := w.until(ctx, w.hard)
	defer free()
	waits, done := w.until(ctx, w.soft)
	defer done()

	out := Outcome{Identity: identity}
	if order != "" {
		if err := w.lanes.enter(waits, order); err != nil {
			out.Verdict = w.unfinished(ctx)
			return w.settle(d, out)
		}
		defer w.lanes.leave(order)
	}
	probe, err := w.admit(waits)
	if err != nil {
		out.Verdict = w.unfinished(ctx)
		return w.settle(d, out)
	}
	r := &run{w: w, d: d, writes: ctx, waits: waits, slot: true, probe: probe}
	err = write(r)
	r.release()
	out.Err, out.Verdict = err, w.judge(r, err)
	if out.Action == memwrite.Ack {
		out.Ended = r.ended
		w.counts.end(r)
	}
	w.proved(r, proofOf(r, out), out)
	if out.Action == memwrite.DeadLetter {
		out.Dead = deadLetter(d, identity, w.sched.Now(), out.Reason, err)
		out.Dead.Redrives = w.attend.forget(eventOf(err))
	}
	return w.settle(d, out)
}

// admit returns with a slot, when there is no hold or as its probe.
func (w *Worker) admit(ctx context.Context) (probe bool, err error) {
	for {
		if probe, err = w.hold.enter(ctx); err != nil {
			return false, err
		}
		if err = w.slots.take(ctx); err != nil {
			if probe {
				w.hold.report(true, neverSent, "")
			}
			return false, err
		}
		if on, _, _, _ := w.hold.state(); !on || probe {
			return probe, nil
		}
		w.slots.give() // the hold began while this one waited for its slot
	}
}

// unfinished is the verdict on a delivery that never got to write.
func (w *Worker) unfinished(ctx context.Context) memwrite.Verdict {
	on, _, reason, left := w.hold.state()
	switch {
	case w.soft.Err() != nil:
		return memwrite.Verdict{Action: memwrite.GiveBack, Reason: "the worker is closing"}
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded) && on:
		return memwrite.Verdict{Action: memwrite.Hold, After: left, Reason: reason}
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return memwrite.Verdict{Action: memwrite.GiveBack, After: w.cfg.RetryBase, Reason: "its turn did not come in time"}
	}
	return memwrite.Verdict{Action: memwrite.GiveBack, Reason: "the delivery's context ended"}
}

// judge is VerdictOf, with what only the worker knows.
func (w *Worker) judge(r *run, err error) memwrite.Verdict {
	v := memwrite.VerdictOf(err)
	switch {
	case errors.Is(err, errRunAgain):
		v = memwrite.Verdict{Action: memwrite.RetryAfter, After: w.backOff(0, r.d.Attempt), Reason: "the event failed and runs again"}
	case errors.Is(err, errNotRetryable):
		v = memwrite.Verdict{Action: memwrite.DeadLetter, Reason: "the event failed and the service will not run it again"}
	case v.Action == memwrite.RedriveEvent: // it was redriven as often as it is worth
		v = memwrite.Verdict{Action: memwrite.DeadLetter, Reason: "the event failed again after every redrive"}
	case v.Action == memwrite.RetryAfter && w.soft.Err() != nil && errors.Is(err, memwrite.ErrStillPending):
		v = memwrite.Verdict{Action: memwrite.GiveBack, Reason: "the worker is closing; the write goes on at the service"}
	case v.Action == memwrite.RetryAfter:
		v.After = w.backOff(v.After, r.d.Attempt)
	}
	return v
}

// backOff is the wait before the next delivery: at least what the service
// asked for, and else longer with each delivery.
func (w *Worker) backOff(asked time.Duration, attempt int) time.Duration {
	if asked > 0 {
		return asked + sched.Jitter(w.sched, min(asked/10, 10*time.Second))
	}
	d := w.cfg.RetryMost
	if n := max(attempt, 1) - 1; n < 20 {
		d = min(w.cfg.RetryBase<<n, w.cfg.RetryMost)
	}
	return d/2 + sched.Jitter(w.sched, d/2)
}

// proofOf is what the end of a write says about a hold.
func proofOf(r *run, out Outcome) proof {
	var e *memwrite.Error
	switch {
	case out.Action == memwrite.Hold:
		return provesShut
	case out.Action == memwrite.GiveBack, r.unsent,
		errors.As(out.Err, &e) && e.Tries == 0 && e.Status == 0: // refused here, or its time was over
		return neverSent
	case out.Action == memwrite.Ack, out.Action == memwrite.DeadLetter, errors.Is(out.Err, memwrite.ErrInProgress):
		return provesOpen
	}
	return provesNothing
}

// proved tells the hold.
func (w *Worker) proved(r *run, p proof, out Outcome) {
	began, ended := w.hold.report(r.probe, p, out.Reason)
	r.probe = false
	switch {
	case began:
		w.counts.holds.Add(1)
		w.cfg.Logger.Error("memwrite worker holds: nothing but a probe is sent until this is mended", slog.String("reason", out.Reason),
			slog.String("kind", kindOf(out.Err)), slog.Duration("probe", w.cfg.ProbeEvery))
	case ended:
		w.cfg.Logger.Info("memwrite worker goes on")
	}
}

// settle counts an outcome, and completes the wait of a Hold.
func (w *Worker) settle(d Delivery, out Outcome) Outcome {
	log := []any{slog.String("identity", out.Identity), slog.String("source", d.Source), slog.String("reason", out.Reason)}
	switch out.Action {
	case memwrite.Ack:
		w.counts.acked.Add(1)
	case memwrite.RetryAfter:
		w.counts.retried.Add(1)
		w.cfg.Logger.Warn("memwrite delivery again later", append(log, slog.Duration("after", out.After), slog.String("kind", kindOf(out.Err)))...)
	case memwrite.Hold:
		_, _, _, out.After = w.hold.state()
		w.counts.held.Add(1)
	case memwrite.DeadLetter:
		w.counts.dead.Add(1)
		w.cfg.Logger.Error("memwrite dead letter", append(log, slog.String("kind", kindOf(out.Err)))...)
	default:
		out.Action = memwrite.GiveBack
		w.counts.givenBack.Add(1)
	}
	return out
}

// extend keeps a delivery alive at its broker until the returned function has
// returned.
func (w *Worker) extend(ctx context.Context, d Delivery) (stop func()) {
	if d.Extend == nil || d.ExtendEvery <= 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	gone := make(chan struct{})
	w.sched.Go(func() {
		defer close(gone)
		for errors.Is(w.sched.Wait(ctx, d.ExtendEvery, nil), sched.ErrElapsed) {
			if err := d.Extend(ctx); err != nil && ctx.Err() == nil {
				w.cfg.Logger.Warn("memwrite delivery could not be extended", slog.String("source", d.Source), slog.Any("error", err))
			}
		}
	})
	return func() {
		cancel()
		_ = w.sched.Wait(context.Background(), sched.Forever, gone)
	}
}

func eventOf(err error) string {
	var e *memwrite.Error
	if errors.As(err, &e) && e.Event != nil {
		return e.Event.ID
	}
	return ""
}

func kindOf(err error) string {
	var e *memwrite.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Kind.String()
	}
	return "not an error of the client"
}
