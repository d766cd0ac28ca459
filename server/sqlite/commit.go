package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// maxGroup bounds how many writes share a transaction, and so how long the
// first of them waits for the others.
const maxGroup = 256

// queue is group commit without a goroutine of its own: the first who comes
// leads, and writes for all who wait; then the next who waits leads.
type queue struct {
	mu      sync.Mutex
	waiting []*write
	led     bool
	closed  bool
	idle    sync.Cond // signalled when nobody leads any more
}

// write is one write that waits for its group.
type write struct {
	do    func(*tx) error // nil: alone, outside a transaction
	alone func() error
	err   error
	ended chan bool // true: it is written; false: lead the next group
}

var errClosed = fmt.Errorf("%w: the store is closed", protocol.ErrUnavailable)

// write runs f in a transaction with whoever else is writing, and returns when
// that is on the disk. f may be told to stop by its own error alone: once begun
// it is not given up, since nobody could say what became of it.
func (s *Store) write(ctx context.Context, f func(*tx) error) error {
	return s.queue.enter(ctx, &write{do: f}, s.group)
}

// alone runs f while nobody writes.
func (q *queue) alone(ctx context.Context, f func() error) error {
	return q.enter(ctx, &write{alone: f}, func(ws []*write) { ws[0].err = ws[0].alone() })
}

func (q *queue) enter(ctx context.Context, w *write, lead func([]*write)) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return errClosed
	}
	if q.led {
		w.ended = make(chan bool, 1)
		q.waiting = append(q.waiting, w)
		q.mu.Unlock()
		if <-w.ended {
			return w.err
		}
		q.mu.Lock()
	} else {
		q.led = true
	}
	// This one leads now. Whatever came meanwhile goes with it.
	ws := append([]*write{w}, q.take(w)...)
	q.mu.Unlock()
	lead(ws)
	q.mu.Lock()
	if len(q.waiting) > 0 {
		next := q.waiting[0]
		q.waiting = q.waiting[1:]
		next.ended <- false
	} else {
		q.led = false
		if q.idle.L != nil {
			q.idle.Broadcast()
		}
	}
	q.mu.Unlock()
	for _, other := range ws[1:] {
		other.ended <- true
	}
	return w.err
}

// take gives those who may share a transaction with w.
func (q *queue) take(w *write) []*write {
	if w.do == nil {
		return nil
	}
	n := 0
	for n < len(q.waiting) && n < maxGroup-1 && q.waiting[n].do != nil {
		n++
	}
	ws := q.waiting[:n:n]
	q.waiting = q.waiting[n:]
	return ws
}

// close lets nobody in any more and waits for those who are. The second call
// says false.
func (q *queue) close() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.closed = true
	q.idle.L = &q.mu
	for q.led {
		q.idle.Wait()
	}
	return true
}

// group writes a whole group in one transaction.
func (s *Store) group(ws []*write) {
	x := &s.tx
	if err := x.plain("BEGIN IMMEDIATE"); err != nil {
		s.abandon(ws, err)
		return
	}
	for _, w := range ws {
		x.touched = x.touched[:0]
		w.err = x.one(w.do, len(ws) > 1)
		if errors.Is(w.err, protocol.ErrUnavailable) {
			// The disk failed: SQLite may have given up the whole transaction.
			s.abandon(ws, w.err)
			return
		}
	}
	if len(ws) == 1 && ws[0].err != nil {
		x.undo(0)
		if err := x.plain("ROLLBACK"); err != nil {
			s.abandon(ws, err)
		}
		return
	}
	if err := x.plain("COMMIT"); err != nil {
		s.abandon(ws, err)
	}
}

// abandon tells a group that nothing is known to be written.
func (s *Store) abandon(ws []*write, err error) {
	s.tx.forget()
	_ = s.tx.plain("ROLLBACK") // there may be none to end
	err = failed(err)
	if !errors.Is(err, protocol.ErrUnavailable) {
		err = fmt.Errorf("%w: %w", protocol.ErrUnavailable, err)
	}
	for _, w := range ws {
		w.err = err
	}
}

// one runs a write under a savepoint, unless it is by itself and the whole
// transaction serves as one. A savepoint inside f serves f alone.
func (x *tx) one(f func(*tx) error, savepoint bool) error {
	if !savepoint {
		return f(x)
	}
	if err := x.plain("SAVEPOINT one"); err != nil {
		return failed(err)
	}
	before := len(x.touched)
	err := f(x)
	if err != nil {
		x.undo(before)
		if errors.Is(err, protocol.ErrUnavailable) {
			return err
		}
		if rerr := x.plain("ROLLBACK TO one"); rerr != nil {
			return failed(rerr)
		}
	}
	if rerr := x.plain("RELEASE one"); rerr != nil {
		return failed(rerr)
	}
	return err
}
