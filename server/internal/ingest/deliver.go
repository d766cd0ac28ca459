package ingest

import (
	"errors"
	"fmt"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/internal/transport"
	"github.com/memwrite/memwrite-go/worker"
)

type done struct {
	it       item
	identity []byte
	out      worker.Outcome
}

func (in *ingest) start(it item, identity []byte) {
	in.open++
	in.sched.Go(func() { in.finished <- done{it, identity, in.deliver(it)} })
}

// deliver sends one record until it has an end, or is not worth more now.
func (in *ingest) deliver(it item) worker.Outcome {
	for attempt := 1; ; attempt++ {
		out := in.worker.Handle(in.writes, worker.Delivery{Data: it.data, Attempt: attempt})
		switch out.Action {
		case memwrite.RetryAfter:
			if attempt >= in.cfg.Attempts {
				return out
			}
		case memwrite.Hold:
			if !in.outlasts(out) {
				return out
			}
			attempt--
		default:
			return out
		}
		if sched.Sleep(in.waits, in.sched, out.After) != nil {
			return out
		}
	}
}

// take waits for the next record to end, and keeps what became of it.
func (in *ingest) take() error {
	d := <-in.finished
	in.open--
	line := Line{Line: d.it.line, Identity: d.out.Identity, Reason: reasonOf(d.out.Reason, d.out.Err)}
	var e *memwrite.Error
	if errors.As(d.out.Err, &e) {
		line.Kind, line.Code = e.Kind.String(), e.Code
		if e.Receipt != nil {
			line.EventID = e.Receipt.EventID
		}
	}
	ended := ""
	switch d.out.Action {
	case memwrite.Ack:
		ended, line.Outcome, line.Reason = string(d.out.Ended), string(d.out.Ended), ""
	case memwrite.DeadLetter:
		line.Outcome = Rejected // it stays open in the state, so that a later run may find it mended at the service
	case memwrite.Hold:
		line.Outcome = Held
		in.hold(d.out)
	default:
		line.Outcome = Unfinished
		if in.counts.Why == "" || !errors.Is(d.out.Err, transport.ErrGate) { // what shut the gate says more
			in.counts.Why = line.Reason
		}
	}
	if in.state != nil && ended != "" {
		if err := in.state.end(in.writes, d.identity, ended); err != nil {
			return fmt.Errorf("the state: %w", err)
		}
	}
	if err := in.say(line); err != nil {
		return err
	}
	return in.tick()
}

// outlasts tells whether a hold is waited out. One for a setting that this
// process lacks does not pass while it runs.
func (in *ingest) outlasts(out worker.Outcome) bool {
	return in.cfg.WaitHold && !errors.Is(out.Err, memwrite.ErrInvalidInput)
}

// hold ends the run: what waits is given back, and what is on its way ends.
func (in *ingest) hold(out worker.Outcome) {
	if in.outlasts(out) || in.stop {
		return
	}
	in.stop, in.counts.Holding, in.counts.HeldFor = true, true, out.Reason
	in.sched.Go(in.interrupt)
}
