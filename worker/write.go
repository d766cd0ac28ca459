package worker

import (
	"context"
	"errors"

	"github.com/memwrite/memwrite-go"
)

// run is one record on its way.
type run struct {
	w      *Worker
	d      Delivery
	writes context.Context // ends when a write has to be given up
	waits  context.Context // ends when the worker begins to close
	slot   bool
	probe  bool // of a hold
	unsent bool // answered without a request
}

// release gives the slot back, once. A wait for an event does not keep one.
func (r *run) release() {
	if r.slot {
		r.slot = false
		r.w.slots.give()
	}
}

func (r *run) write(rec Record) error {
	switch {
	case rec.Add != nil:
		return r.add(*rec.Add)
	case rec.Turn != nil:
		res, err := r.w.client.AddTurn(r.writes, *rec.Turn)
		if err != nil {
			return err
		}
		r.unsent = res.Tries == 0
		switch {
		case res.AlreadyExists, res.ProcessingStatus == memwrite.TurnReplayed:
			r.w.counts.already.Add(1)
		case res.ProcessingStatus == memwrite.SkippedNonUser, res.ProcessingStatus == memwrite.SkippedLowValue:
			r.w.counts.skipped.Add(1)
		default:
			r.w.counts.stored.Add(1)
		}
		return nil
	case rec.Verbatim:
		_, err := r.w.client.AddVerbatim(r.writes, *rec.Infer)
		if err == nil {
			r.w.counts.stored.Add(1)
		}
		return err
	}
	return r.infer(*rec.Infer)
}

// add writes one fact. Another text under the reference is an error here, and
// when the memory could not be read to tell, so is that, if it can pass.
func (r *run) add(req memwrite.AddRequest) error {
	req.VerifyText = true
	res, err := r.w.client.Add(r.writes, req)
	if err != nil {
		return err
	}
	switch res.Outcome {
	case memwrite.Stored:
		r.w.counts.stored.Add(1)
	case memwrite.AlreadyIngested:
		if res.VerifyErr != nil && !errors.Is(res.VerifyErr, memwrite.ErrNotFound) {
			return res.VerifyErr
		}
		r.w.counts.already.Add(1)
		if res.Verified == memwrite.TextUnknown {
			r.w.counts.unverified.Add(1)
		}
	default:
		r.w.counts.skipped.Add(1)
	}
	return nil
}

// infer hands a write to extraction and stays with it until its event ends.
func (r *run) infer(req memwrite.InferRequest) error {
	receipt, err := r.w.client.AddAsync(r.writes, req)
	r.release()
	if err != nil {
		return err
	}
	r.w.proved(r, provesOpen, Outcome{})
	if r.w.cfg.Watcher != nil && !receipt.Status.Terminal() {
		if err := r.w.cfg.Watcher.Watch(r.writes, Accepted{Receipt: *receipt, Source: r.d.Source, Data: r.d.Data}); err != nil {
			return err
		}
		r.w.counts.watched.Add(1)
		return nil
	}
	ev, err := r.w.attend.end(r.waits, *receipt)
	switch {
	case err != nil:
		return err
	case ev.NoMemory():
		r.w.counts.noMemory.Add(1)
	default:
		r.w.counts.stored.Add(1)
	}
	return nil
}
