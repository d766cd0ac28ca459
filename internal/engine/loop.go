package engine

import (
	"errors"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
)

// loop is runner and repair in one: it looks for due tasks when woken, when
// the next known one becomes due, and every RepairEvery whatever it was told.
func (e *Engine) loop() {
	futile := 0 // looks in a row that took nothing of what is due
	for e.ctx.Err() == nil {
		free := e.reserve()
		if free > 0 {
			n, err := e.claim(free)
			e.failed(err)
			if n > 0 {
				futile = 0
			}
			if n > 0 && err == nil {
				continue // there may be more, as long as a runner is free
			}
			e.mu.Lock()
			e.behind = false
			e.mu.Unlock()
		}
		wait, due := e.pause(free)
		if due {
			wait = min(time.Millisecond<<min(futile, 30), e.limits.RepairEvery)
			futile++
		}
		err := e.sched.Wait(e.ctx, wait, e.dispatch)
		if err != nil && !errors.Is(err, sched.ErrElapsed) {
			return
		}
	}
}

// reserve takes every runner that is free for the look that follows, so that
// none is given away meanwhile; with none, what is due stays behind.
func (e *Engine) reserve() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.draining {
		return 0
	}
	n := max(e.limits.Runners-e.busy, 0)
	e.behind = e.behind || n == 0
	e.busy += n
	return n
}

// unreserve frees runners that a look found nothing for.
func (e *Engine) unreserve(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.busy -= n
	e.calmed()
}

// calmed tells who drains the engine that fewer runners are busy.
func (e *Engine) calmed() {
	if !e.draining {
		return
	}
	select {
	case e.quiet <- struct{}{}:
	default:
	}
}

// pause is how long nothing is to be done, unless something wakes the loop. due:
// there is something now that was not taken. Somebody else holds it, or no
// write fits it any more, and asking for it again and again would spin.
func (e *Engine) pause(free int) (wait time.Duration, due bool) {
	if free <= 0 {
		return e.limits.RepairEvery, false // a runner that ends wakes the loop
	}
	at, ok, err := e.store.NextDue(e.ctx)
	if err != nil || !ok {
		return e.limits.RepairEvery, false
	}
	wait = at.Sub(e.sched.Now())
	return min(wait, e.limits.RepairEvery), wait <= 0
}

// claim takes up to limit due tasks and runs them, each with one of the limit
// runners that are reserved for it. It returns how many rows it wrote, those it
// ended itself included.
func (e *Engine) claim(limit int) (int, error) {
	used := 0
	defer func() { e.unreserve(limit - used) }()
	now := e.sched.Now()
	token := e.random("", 12)
	workspaces := map[string]protocol.Workspace{}
	// By row and not by task: one look may end a task and then take up its
	// projection.
	type row struct {
		id      string
		version int64
	}
	ours := map[row]bool{}
	found := map[string]protocol.Task{}
	// One token serves a whole look: it is only ever compared within a task.
	ts, err := e.store.Claim(e.ctx, now, limit, func(t protocol.Task) (protocol.WriteSet, bool) {
		ws, claimed, write := protocol.Claim(t, e.name, token, e.limits.Lease, now)
		ours[row{t.ID, t.Version + 1}] = claimed
		if e.observe != nil {
			found[t.ID] = t
		}
		return ws, write
	})
	for _, t := range ts {
		before := found[t.ID]
		e.tellClaimed(&before, &t)
		e.moved(&t)
		if !ours[row{t.ID, t.Version}] {
			continue // ended by repair
		}
		w, ok := workspaces[t.Workspace]
		if !ok {
			var werr error
			if w, werr = e.store.Workspace(e.ctx, t.Workspace); werr != nil {
				e.failed(werr)
				continue
			}
			workspaces[t.Workspace] = w
		}
		used++
		e.runs(t, w)
	}
	return len(ts), err
}

func (e *Engine) release() {
	e.mu.Lock()
	e.busy--
	behind := e.behind
	e.calmed()
	e.mu.Unlock()
	if behind {
		e.nudge()
	}
}

// slot takes a free runner for a task that is just accepted, unless older ones
// may be waiting for it. Whoever gets true calls release in the end.
func (e *Engine) slot() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.started || e.closed || e.draining || e.behind || e.busy >= e.limits.Runners {
		return false
	}
	e.busy++
	return true
}

// runs lets a claimed task run in the slot that was taken for it.
func (e *Engine) runs(t protocol.Task, w protocol.Workspace) {
	if !e.spawn(func() { defer e.release(); e.run(t, w) }) {
		e.release()
	}
}

// take gives a task that was just accepted to a runner of this process, if
// there is a slot. What it does not claim is left to the loop.
func (e *Engine) take(t protocol.Task, w protocol.Workspace) bool {
	if !e.slot() {
		return false
	}
	ok := e.spawn(func() {
		defer e.release()
		if got, ok := e.claimOne(t); ok {
			e.tellClaimed(&t, &got)
			e.moved(&got)
			e.run(got, w)
		}
	})
	if !ok {
		e.release()
	}
	return true
}

func (e *Engine) claimOne(t protocol.Task) (protocol.Task, bool) {
	token := e.random("", 12)
	ws, claimed, _ := protocol.Claim(t, e.name, token, e.limits.Lease, e.sched.Now())
	if !claimed {
		e.lag() // the clock went back
		return t, false
	}
	got, err := e.store.Apply(e.ctx, ws)
	switch {
	case err == nil:
		return got, true
	case errors.Is(err, protocol.ErrStale):
		return t, false // somebody was faster
	}
	// The store may have made the claim all the same, and then nobody else takes
	// the task before the lease is over.
	e.failed(err)
	if got, err = e.store.Task(e.ctx, t.ID); err == nil && got.Lease.Token == token {
		return got, true
	}
	e.lag()
	return t, false
}
