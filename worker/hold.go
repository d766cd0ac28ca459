package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/memwrite/memwrite-go/internal/sched"
)

// hold is the state in which nothing may be sent but a probe now and then,
// because a person or the calendar must act first. Holding single messages
// instead would run each of them into the broker's own limits.
type hold struct {
	sched       sched.Scheduler
	first, most time.Duration // between probes

	mu      sync.Mutex
	on      bool
	since   time.Time
	reason  string
	every   time.Duration
	next    time.Time // the next probe does not leave before
	probing bool
	waiters map[chan struct{}]struct{}
}

// proof is what the end of a write says about a hold.
type proof int

const (
	provesNothing proof = iota // the service did not say
	provesOpen                 // it took a request and judged it
	provesShut                 // it says again that somebody must act
	neverSent                  // nothing left this process
)

// enter returns when a write may go out, and whether it is the probe. Each
// probe must be followed by one report.
func (h *hold) enter(ctx context.Context) (probe bool, err error) {
	for {
		h.mu.Lock()
		if !h.on {
			h.mu.Unlock()
			return false, nil
		}
		now := h.sched.Now()
		if !h.probing && !now.Before(h.next) {
			h.probing = true
			h.mu.Unlock()
			return true, nil
		}
		err := h.wait(ctx, now)
		if err != nil && !errors.Is(err, sched.ErrElapsed) {
			return false, err
		}
	}
}

// due returns when there is no hold or a probe may go out, without taking it.
func (h *hold) due(ctx context.Context) (held bool, err error) {
	for {
		h.mu.Lock()
		now := h.sched.Now()
		if !h.on || !h.probing && !now.Before(h.next) {
			held = h.on
			h.mu.Unlock()
			return held, nil
		}
		if err := h.wait(ctx, now); err != nil && !errors.Is(err, sched.ErrElapsed) {
			return false, err
		}
	}
}

// wait waits for a change or the time of the next probe. It is called with the
// lock and returns without it.
func (h *hold) wait(ctx context.Context, now time.Time) error {
	d := h.next.Sub(now)
	if h.probing {
		d = sched.Forever
	}
	wake := make(chan struct{}, 1)
	h.waiters[wake] = struct{}{}
	h.mu.Unlock()
	err := h.sched.Wait(ctx, d, wake)
	h.mu.Lock()
	delete(h.waiters, wake)
	h.mu.Unlock()
	return err
}

// report says how a write ended. began and ended tell whether that changed the
// state.
func (h *hold) report(probe bool, p proof, reason string) (began, ended bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.sched.Now()
	if probe {
		h.probing = false
	}
	switch {
	case p == provesShut && !h.on:
		h.on, h.since, h.reason, h.every = true, now, reason, h.first
		h.next = now.Add(h.every)
		began = true
	case p == provesShut && probe:
		h.reason, h.every = reason, min(2*h.every, h.most)
		h.next = now.Add(h.every)
	case p == provesOpen && h.on && probe:
		h.on, ended = false, true
	case p == provesNothing && probe:
		h.next = now.Add(h.every)
	case p == neverSent && probe:
		h.next = now
	}
	for wake := range h.waiters {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
	return began, ended
}

// state is the hold as it is now.
func (h *hold) state() (on bool, since time.Time, reason string, left time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.on, h.since, h.reason, max(h.next.Sub(h.sched.Now()), 0)
}
