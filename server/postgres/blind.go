package postgres

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// Most batches are what they look like: no command has a twin, every account
// covers, every runner holds its lease and its task is as it left it. Such a
// batch is sent in one round without a look before, each statement with what
// must be true of the rows it meets. When one is not, nothing is committed, and
// the batch is judged one by one instead.

// fiction stands for what an account holds while only the change counts. The
// database refuses a change that its own balance does not cover.
const fiction = int64(1) << 60

func newFiction(sets ...[]protocol.Entry) *books {
	b := newBooks(sets...)
	for _, a := range b.accounts {
		b.set(protocol.Balance{Account: a, Granted: 2 * fiction, Available: fiction, Reserved: fiction})
	}
	return b
}

// acceptBlind reports whether the batch is accepted as a whole.
func (s *Store) acceptBlind(ctx context.Context, ps []proposal, which []int, out []result[accepted]) bool {
	if !s.hopes.accepts.there() {
		return false
	}
	var sets [][]protocol.Entry
	for _, i := range which {
		if p := &ps[i]; p.found.takeover || p.found.unsure || len(p.Tombstones) > 0 {
			return false
		}
		sets = append(sets, ps[i].Entries)
	}
	c := &changes{books: newFiction(sets...), claims: true}
	for _, id := range c.books.grants {
		if !s.seen.has(id) {
			return false // the account may not be there
		}
		c.books.granted[id] = true
	}
	for _, i := range which {
		p := &ps[i]
		if c.books.post(p.Entries) != nil {
			return false
		}
		c.created, c.records, c.history = append(c.created, &p.Task), append(c.records, p.Records...), append(c.history, p.Transitions...)
	}
	err := s.blindly(ctx, c)
	s.hopes.accepts.learn(err)
	if err != nil {
		for _, i := range which {
			ps[i].found.unsure = errors.Is(err, errOutcomeUnknown)
		}
		return false
	}
	for _, i := range which {
		out[i].out = accepted{ps[i].Task, false}
	}
	return true
}

// applyBlind reports whether all sets are written. Each is judged by the row as
// this node last wrote it; the database refuses if it is not that one any more.
func (s *Store) applyBlind(ctx context.Context, ws []*protocol.WriteSet, out []result[*protocol.Task]) bool {
	if !s.hopes.steps.there() {
		return false
	}
	var sets [][]protocol.Entry
	st := &steps{rows: make(map[string]*row, len(ws)), records: map[string]protocol.Record{}, blind: true}
	rows := make([]row, len(ws))
	for i := range ws {
		w, r := ws[i], &rows[i]
		if r.was = s.rows.get(w.Task.ID); r.was == nil || len(w.Superseded) > 0 || !w.If.Holds(r.was) || st.rows[r.was.ID] != nil {
			return false
		}
		r.is = r.was
		st.rows[r.was.ID] = r
		sets = append(sets, w.Entries)
	}
	st.c = &changes{books: newFiction(sets...), updated: make([]update, 0, len(ws)), history: make([]protocol.Transition, 0, len(ws))}
	for i := range ws {
		for _, e := range ws[i].Entries {
			was := rows[i].was
			if (e.Kind != protocol.Settle && e.Kind != protocol.Release) || e.Of != was.Reservation || e.Amount != was.Amount || e.Account != was.Account {
				return false
			}
			st.c.books.open[e.Of] = e.Amount // it ends once: there is a unique index
		}
	}
	for i := range ws {
		if _, err := st.apply(ws[i]); err != nil {
			return false
		}
	}
	st.settle()
	err := s.blindly(ctx, st.c)
	s.hopes.steps.learn(err)
	if err != nil {
		// Who was wrong about a row forgets it. A commit that may have happened
		// is found out about by the look.
		for i := range ws {
			s.rows.drop(ws[i].Task.ID)
		}
		return false
	}
	for i := range ws {
		out[i].out = rows[i].is
	}
	return true
}

// hope is lost for some batches when one was not what it looked like: where
// twins or short accounts are common, the look before costs less.
type hope struct{ off atomic.Int32 }

const restrained = 8

func (h *hope) there() bool {
	if h.off.Load() == 0 {
		return true
	}
	h.off.Add(-1)
	return false
}

func (h *hope) learn(err error) {
	if err != nil {
		h.off.Store(restrained)
	}
}

// kept are tasks that run here, as they were last written.
type kept struct {
	mu    sync.Mutex
	tasks map[string]*protocol.Task
}

const mostKept = 10_000

// get gives a task that is known, or nil.
func (k *kept) get(id string) *protocol.Task {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tasks[id]
}

// keep remembers a task while it runs. Nobody changes it from now on.
func (k *kept) keep(t *protocol.Task) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case t.State != protocol.Running:
		delete(k.tasks, t.ID)
	default:
		if k.tasks == nil || len(k.tasks) >= mostKept {
			k.tasks = map[string]*protocol.Task{}
		}
		k.tasks[t.ID] = t
	}
}

func (k *kept) drop(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.tasks, id)
}

// blindly commits what was decided without a look.
func (s *Store) blindly(ctx context.Context, c *changes) error {
	if !c.single() {
		return s.transact(ctx, func(ctx context.Context, t *tx) error { return s.commit(ctx, t, c) })
	}
	args, err := c.args()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	defer c.sent()
	return s.again(ctx, func() error {
		conn, err := s.pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
		return unknown(s.send(ctx, conn.Conn(), args))
	})
}
