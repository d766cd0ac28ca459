package engine

import (
	"errors"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// errDetached is how an attempt leaves the goroutine of its caller: something
// lies ahead that may take longer than the caller waits. It is made again in a
// goroutine of its own and goes on where it stood.
var errDetached = errors.New("engine: the attempt goes on by itself")

// room is what an inline run needs: a runner that is free, or none where the
// extractor is prompt, since such a run keeps nobody else waiting. nil: there is
// no room. Whoever gets some calls it in the end.
func (e *Engine) room() (release func()) {
	if !e.prompt() {
		if !e.slot() {
			return nil
		}
		return e.release
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.started || e.closed || e.draining {
		return nil
	}
	return func() {}
}

func (e *Engine) prompt() bool {
	p, ok := e.extract.(protocol.Prompt)
	return ok && p.Prompt()
}

// runInline lets a claimed task run in the goroutine of the caller who waits for
// it, no longer than most, in the room that was taken for it. It gives the task
// as it stands then. That the caller is gone changes nothing.
func (e *Engine) runInline(t protocol.Task, w protocol.Workspace, most time.Duration, release func()) protocol.Task {
	if !e.enter() {
		release()
		return t
	}
	defer e.leave()
	r := e.newRunner(t, w)
	r.inline, r.patience = true, e.sched.Now().Add(most)
	err := r.attempt()
	if !errors.Is(err, errDetached) {
		r.end(err)
		release()
		defer e.reuse(r)
		return r.now(nil)
	}
	r.inline = false
	at := r.now(nil)
	if !e.spawn(func() { defer release(); r.end(r.attempt()) }) {
		r.end(ErrClosed)
		release()
	}
	return at
}

// abandon gives back the room of a task that was to run inline. If the store
// failed it may have been accepted and claimed all the same: it then runs, since
// nobody else takes it before its lease is over.
func (e *Engine) abandon(t protocol.Task, w protocol.Workspace, err error, release func()) {
	if err == nil || errors.Is(err, protocol.ErrInsufficient) || errors.Is(err, protocol.ErrInvariant) || errors.Is(err, protocol.ErrNotFound) {
		release()
		return
	}
	ok := e.spawn(func() {
		defer release()
		if got, err := e.store.Task(e.ctx, t.ID); err == nil && got.Lease.Token == t.Lease.Token {
			e.run(got, w)
		}
	})
	if !ok {
		release()
	}
}
