package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/internal/company"
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

	company *company.Company
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
		q.company.Came(len(q.waiting))
		q.mu.Unlock()
		if <-w.ended {
			return w.err
		}
		q.mu.Lock()
	} else {
		q.led = true
	}
	// This one leads now. Whatever came meanwhile goes with it.
	if w.do != nil {
		q.company.Gather(&q.mu, 1, len(q.waiting))
	}
	ws := append([]*write{w}, q.take(w)...)
	q.mu.Unlock()
	began := q.company.Now()
	lead(ws)
	q.mu.Lock()
	// Who came meanwhile and who is answered now are company for each other.
	q.company.Served(len(ws)+len(q.waiting), began)
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

// group writes a whole group in one transaction: without savepoints as long as
// nobody is refused who has written something already, which is nearly always.
func (s *Store) group(ws []*write) {
	if !s.together(ws, false) {
		s.together(ws, true)
	}
}

// together says false when the group has to be written with savepoints, and
// then nothing of it is.
func (s *Store) together(ws []*write, careful bool) bool {
	x := &s.tx
	x.careful = careful
	if !careful && x.wary > 0 {
		x.wary--
	}
	if err := x.plain("BEGIN IMMEDIATE"); err != nil {
		return s.abandon(ws, err)
	}
	var err error
	last := x.last
	for _, w := range ws {
		x.touched = x.touched[:0]
		w.err = x.one(w.do)
		if errors.Is(w.err, errRedo) {
			err = w.err
			break
		}
		if errors.Is(w.err, protocol.ErrUnavailable) {
			// The disk failed: SQLite may have given up the whole transaction.
			return s.abandon(ws, w.err)
		}
	}
	if err == nil {
		err = x.flush()
	}
	if err == nil {
		if err = x.plain("COMMIT"); err == nil {
			s.folding.written(x, len(ws))
			return true
		}
		return s.abandon(ws, err)
	}
	if careful || errors.Is(err, protocol.ErrUnavailable) {
		return s.abandon(ws, err)
	}
	x.forget()
	if err := x.plain("ROLLBACK"); err != nil {
		return s.abandon(ws, err)
	}
	x.last = last
	return false
}

// abandon tells a group that nothing is known to be written.
func (s *Store) abandon(ws []*write, err error) bool {
	s.tx.forget()
	_ = s.tx.plain("ROLLBACK") // there may be none to end
	err = failed(err)
	if !errors.Is(err, protocol.ErrUnavailable) {
		err = fmt.Errorf("%w: %w", protocol.ErrUnavailable, err)
	}
	for _, w := range ws {
		w.err = err
	}
	return true
}
