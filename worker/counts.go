package worker

import (
	"sync/atomic"
	"time"
)

// Counts is what a Worker did so far, and what it does now.
type Counts struct {
	Delivered int64 `json:"delivered"` // messages handed to Handle

	Acked     int64 `json:"acked"`
	Retried   int64 `json:"retried"`
	Held      int64 `json:"held"`       // returned because of a hold
	GivenBack int64 `json:"given_back"` // returned because of Close, a context or Patience
	Dead      int64 `json:"dead"`

	// How acknowledged writes ended.
	Stored     int64 `json:"stored"`
	Already    int64 `json:"already"`    // known before
	Skipped    int64 `json:"skipped"`    // nothing worth storing, or not a user's turn
	NoMemory   int64 `json:"no_memory"`  // an event that succeeded without a memory
	Watched    int64 `json:"watched"`    // acknowledged on the receipt
	Unverified int64 `json:"unverified"` // of Already: nobody could tell whether the text is the same

	Redriven int64 `json:"redriven"`
	Holds    int64 `json:"holds"` // times the worker began to hold

	InHand    int           `json:"in_hand"`
	Writing   int           `json:"writing"`
	Holding   bool          `json:"holding"`
	HeldSince time.Time     `json:"held_since,omitzero"`
	HeldFor   string        `json:"held_for,omitempty"` // the reason
	NextProbe time.Duration `json:"next_probe_ns,omitzero"`
}

type counters struct {
	delivered, acked, retried, held, givenBack, dead        atomic.Int64
	stored, already, skipped, noMemory, watched, unverified atomic.Int64
	holds                                                   atomic.Int64
}

func (c *counters) end(r *run) {
	switch r.ended {
	case Stored:
		c.stored.Add(1)
	case Already:
		c.already.Add(1)
	case Skipped:
		c.skipped.Add(1)
	case NoMemory:
		c.noMemory.Add(1)
	case Watched:
		c.watched.Add(1)
	}
	if r.unverified {
		c.unverified.Add(1)
	}
}

// Counts reads the counters. They are this process's and begin at zero.
func (w *Worker) Counts() Counts {
	c := &w.counts
	out := Counts{
		Delivered: c.delivered.Load(), Acked: c.acked.Load(), Retried: c.retried.Load(), Held: c.held.Load(),
		GivenBack: c.givenBack.Load(), Dead: c.dead.Load(), Stored: c.stored.Load(), Already: c.already.Load(),
		Skipped: c.skipped.Load(), NoMemory: c.noMemory.Load(), Watched: c.watched.Load(), Unverified: c.unverified.Load(),
		Redriven: w.attend.made(), Holds: c.holds.Load(), Writing: w.slots.inside(),
	}
	on, since, reason, left := w.hold.state()
	if on {
		out.Holding, out.HeldSince, out.HeldFor, out.NextProbe = true, since, reason, left
	}
	w.mu.Lock()
	out.InHand = w.inHand
	w.mu.Unlock()
	return out
}
