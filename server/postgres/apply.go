package postgres

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/internal/doc"
)

// Apply writes a set together with those of others that come at the same
// moment, each if its own condition holds.
func (s *Store) Apply(ctx context.Context, w protocol.WriteSet) (protocol.Task, error) {
	t, err := s.steps.do(ctx, &w)
	if err != nil {
		return protocol.Task{}, err
	}
	return *t, nil
}

func (s *Store) applyBatch(ctx context.Context, ws []*protocol.WriteSet) []result[*protocol.Task] {
	out := make([]result[*protocol.Task], len(ws))
	if !s.applyBlind(ctx, ws, out) {
		s.applyAll(ctx, ws, out)
	}
	for i := range out {
		if out[i].err != nil {
			s.rows.drop(ws[i].Task.ID)
		} else {
			s.rows.keep(out[i].out)
		}
	}
	return out
}

func (s *Store) applyAll(ctx context.Context, ws []*protocol.WriteSet, out []result[*protocol.Task]) {
	err := s.transact(ctx, func(ctx context.Context, t *tx) error { return s.applyOnce(ctx, t, ws, out) })
	switch {
	case err == nil:
	case refused(err) && len(ws) > 1:
		for i := range ws {
			s.applyAll(ctx, ws[i:i+1], out[i:i+1])
		}
	default:
		for i := range out {
			out[i] = result[*protocol.Task]{err: judged(err)}
		}
	}
}

// applyOnce: the first round locks the tasks and whatever else the sets touch,
// the second writes. A task that is in the batch twice is written once, as the
// second set leaves it.
func (s *Store) applyOnce(ctx context.Context, t *tx, ws []*protocol.WriteSet, out []result[*protocol.Task]) error {
	ids := map[string]bool{}
	var sets [][]protocol.Entry
	for i := range ws {
		ids[ws[i].Task.ID] = true
		sets = append(sets, ws[i].Entries)
	}
	st := &steps{c: &changes{books: newBooks(sets...)}, rows: map[string]*row{}, records: map[string]protocol.Record{}}
	err := t.round(ctx, func(b *pgx.Batch) {
		b.Queue(`select `+taskColumns+` from tasks t where t.id = any($1::text[]) order by t.id for update`, slices.Sorted(maps.Keys(ids))).Query(st.lock)
		s.queueFreed(b, ws)
		queueRecordLocks(b, touched(ws), st.records)
		s.queueBooks(b, st.c.books)
		s.queueOpen(b, st.c.books, ws)
	})
	if err != nil {
		return err
	}
	wrote := false
	for i := range ws {
		out[i] = result[*protocol.Task]{}
		out[i].out, out[i].err = st.apply(ws[i])
		wrote = wrote || out[i].err == nil
	}
	if !wrote {
		return nil
	}
	st.settle()
	return s.commit(ctx, t, st.c)
}

// row is a locked task: as it was and as it is going to be. Neither is changed,
// only replaced, so that others may hold it too.
type row struct {
	was, is *protocol.Task
	changed bool
	place   *pgtype.TID // of the locked row, where that is known
}

// steps applies write sets to locked rows.
type steps struct {
	c       *changes
	rows    map[string]*row
	records map[string]protocol.Record // locked
	blind   bool                       // nothing is locked
}

func (st *steps) lock(rows pgx.Rows) error {
	return each(rows, func(r pgx.CollectableRow) error {
		t, err := scanTask(r)
		st.rows[t.ID] = &row{was: &t, is: &t}
		return err
	})
}

// apply does to a row what the protocol decided, or leaves everything as it is.
func (st *steps) apply(w *protocol.WriteSet) (*protocol.Task, error) {
	r := st.rows[w.Task.ID]
	if r == nil {
		return nil, protocol.ErrNotFound
	}
	if !w.If.Holds(r.is) {
		return nil, protocol.ErrStale
	}
	t := w.Task
	t.Version = r.is.Version + 1
	doc.UTC(&t)
	if err := protocol.CheckStep(r.is, &t); err != nil {
		return nil, err
	}
	for i := range w.Records {
		if slices.ContainsFunc(st.c.records, func(have protocol.Record) bool {
			return have.ID == w.Records[i].ID && have.Workspace == w.Records[i].Workspace
		}) {
			return nil, broken("record %s exists", w.Records[i].ID)
		}
	}
	if err := st.c.books.post(w.Entries); err != nil {
		return nil, err
	}
	st.c.records = append(st.c.records, w.Records...)
	for _, sup := range w.Superseded {
		if old, ok := st.records[sup.ID]; ok && !old.Forgotten && old.Workspace == t.Workspace {
			st.records[sup.ID] = old.Supersede(sup.By, t.UpdatedAt)
			st.c.edited = append(st.c.edited, st.records[sup.ID])
		}
	}
	if w.Projected && t.Plan != nil {
		for _, m := range t.Plan.Mutations {
			if r := st.records[m.RecordID]; st.blind || !r.Forgotten {
				st.c.shown = append(st.c.shown, m.RecordID)
			}
		}
	}
	if w.Transition != nil {
		st.c.history = append(st.c.history, *w.Transition)
	}
	if h := t.Identity.Hash; w.Free && !h.IsZero() {
		st.c.dropped = append(st.c.dropped, holder{h, t.ID})
	}
	r.is, r.changed = &t, true
	return r.is, nil
}

// settle names the rows that changed, each fenced by what was read of it.
func (st *steps) settle() {
	for _, r := range st.rows {
		if r.changed {
			was := protocol.Condition{State: r.was.State, Token: r.was.Lease.Token, Version: r.was.Version}
			st.c.updated = append(st.c.updated, update{r.is, was, doc.SameBody(r.was, r.is), r.place})
		}
	}
}

// touched are the records that sets change.
func touched(ws []*protocol.WriteSet) (ids []string) {
	for i := range ws {
		for _, s := range ws[i].Superseded {
			ids = append(ids, s.ID)
		}
		if ws[i].Projected && ws[i].Task.Plan != nil {
			for _, m := range ws[i].Task.Plan.Mutations {
				ids = append(ids, m.RecordID)
			}
		}
	}
	return ids
}

// queueFreed locks the identities that sets free, before any account: everybody
// locks tasks, identities, records, accounts and counters in this order.
func (s *Store) queueFreed(b *pgx.Batch, ws []*protocol.WriteSet) {
	var hashes [][]byte
	for i := range ws {
		if ws[i].Free {
			hashes = append(hashes, ws[i].Task.Identity.Hash[:])
		}
	}
	if len(hashes) > 0 {
		b.Queue(`select 1 from identities where hash = any($1::bytea[]) order by hash for update`, hashes)
	}
}
