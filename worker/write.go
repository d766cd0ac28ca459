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

	ended      Ending
	unverified bool // nobody could tell whether the text is the same
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
		return r.turn(*rec.Turn)
	case rec.Verbatim:
		_, err := r.w.client.AddVerbatim(r.writes, *rec.Infer)
		r.ended = Stored
		return err
	}
	return r.infer(*rec.Infer)
}

func (r *run) turn(req memwrite.TurnRequest) error {
	res, err := r.w.client.AddTurn(r.writes, req)
	if err != nil {
		return err
	}
	r.unsent = res.Tries == 0
	switch {
	case res.AlreadyExists, res.ProcessingStatus == memwrite.TurnReplayed:
		r.ended = Already
	case res.ProcessingStatus == memwrite.SkippedNonUser, res.ProcessingStatus == memwrite.SkippedLowValue:
		r.ended = Skipped
	default:
		r.ended = Stored
	}
	return nil
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
		r.ended = Stored
	case memwrite.AlreadyIngested:
		if res.VerifyErr != nil && !errors.Is(res.VerifyErr, memwrite.ErrNotFound) {
			return res.VerifyErr
		}
		r.ended, r.unverified = Already, res.Verified == memwrite.TextUnknown
	default:
		r.ended = Skipped
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
		r.ended = Watched
		return r.w.cfg.Watcher.Watch(r.writes, Accepted{Receipt: *receipt, Source: r.d.Source, Data: r.d.Data})
	}
	ev, err := r.w.attend.end(r.waits, *receipt)
	if err != nil {
		return err
	}
	r.ended = Stored
	if ev.NoMemory() {
		r.ended = NoMemory
	}
	return nil
}
