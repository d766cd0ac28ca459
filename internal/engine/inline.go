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

// runInline lets a claimed task run in the goroutine of the caller who waits for
// it, no longer than most, in the slot that was taken for it. It gives the task
// as it stands then. That the caller is gone changes nothing.
func (e *Engine) runInline(t protocol.Task, w protocol.Workspace, most time.Duration) protocol.Task {
	if !e.enter() {
		e.release()
		return t
	}
	defer e.leave()
	r := e.newRunner(t, w)
	r.inline, r.patience = true, e.sched.Now().Add(most)
	err := r.attempt()
	if !errors.Is(err, errDetached) {
		r.end(err)
		e.release()
		return r.now()
	}
	r.inline = false
	at := r.now()
	if !e.spawn(func() { defer e.release(); r.end(r.attempt()) }) {
		r.end(ErrClosed)
		e.release()
	}
	return at
}

// abandon gives back the slot of a task that was to run inline. If the store
// failed it may have been accepted and claimed all the same: it then runs, since
// nobody else takes it before its lease is over.
func (e *Engine) abandon(t protocol.Task, w protocol.Workspace, err error) {
	if err == nil || errors.Is(err, protocol.ErrInsufficient) || errors.Is(err, protocol.ErrInvariant) || errors.Is(err, protocol.ErrNotFound) {
		e.release()
		return
	}
	ok := e.spawn(func() {
		defer e.release()
		if got, err := e.store.Task(e.ctx, t.ID); err == nil && got.Lease.Token == t.Lease.Token {
			e.run(got, w)
		}
	})
	if !ok {
		e.release()
	}
}
