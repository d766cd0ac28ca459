package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/internal/doc"
)

// Apply writes a set if its condition holds.
func (s *Store) Apply(ctx context.Context, w protocol.WriteSet) (t protocol.Task, err error) {
	p, err := prepare(w)
	if err != nil {
		return protocol.Task{}, err
	}
	epoch := s.fresh.begin(&p)
	err = s.write(ctx, func(x *tx) (err error) {
		t, err = x.apply(p)
		return err
	})
	s.fresh.end(&p, epoch, err)
	if err != nil {
		return protocol.Task{}, err
	}
	return t, nil
}

// step is a write set with everything written down that does not depend on the
// row it meets, so that the writer is held for as little as can be.
type step struct {
	w       protocol.WriteSet
	raw     string
	records []row
}

func prepare(w protocol.WriteSet) (step, error) {
	doc.UTC(&w.Task)
	raw, err := doc.OfTask(&w.Task)
	if err != nil {
		return step{}, err
	}
	records, err := rowsOf(w.Records)
	p := step{w, string(raw), records}
	// What this very set adds is projected as it is added, unless something of it
	// takes its place.
	if w.Projected && w.Task.Plan != nil && len(w.Superseded) == 0 {
		for i := range p.records {
			r := &p.records[i]
			planned := slices.ContainsFunc(w.Task.Plan.Mutations, func(m protocol.Mutation) bool { return m.RecordID == r.r.ID })
			r.projected = r.projected || (planned && !r.r.Forgotten && r.r.Workspace == w.Task.Workspace)
		}
	}
	return p, err
}

// apply looks at the row, lets the protocol judge the step, and writes it under
// the condition that the row is still the one that was judged.
func (x *tx) apply(p step) (protocol.Task, error) {
	t := p.w.Task
	old, err := x.row(t.ID)
	if err != nil {
		return protocol.Task{}, err
	}
	if !p.w.If.Holds(&old.task) {
		return protocol.Task{}, protocol.ErrStale
	}
	t.Version = old.task.Version + 1
	if err := protocol.CheckStep(&old.task, &t); err != nil {
		return protocol.Task{}, err
	}
	if x.pending.first > 0 && old.seq >= x.pending.first {
		if err := x.insertPending(); err != nil {
			return protocol.Task{}, err
		}
	}
	n, err := x.execAside(`UPDATE task SET state = ?, version = ?, token = ?, due = ?, doc = ? WHERE seq = ? AND version = ? AND state = ? AND token = ?`,
		string(t.State), t.Version, t.Lease.Token, due(&t), p.raw, old.seq, old.task.Version, string(old.task.State), old.task.Lease.Token)
	if err != nil {
		return protocol.Task{}, err
	}
	if n != 1 {
		delete(x.tasks, t.ID)
		return protocol.Task{}, protocol.ErrStale
	}
	if err := x.post(p.w.Entries, t.ID, old.seq); err != nil {
		return protocol.Task{}, err
	}
	if err := x.insertRecords(p.records, old.seq); err != nil {
		return protocol.Task{}, err
	}
	for _, s := range p.w.Superseded {
		if err := x.supersede(t.Workspace, s, t.UpdatedAt); err != nil {
			return protocol.Task{}, err
		}
	}
	if p.w.Projected && t.Plan != nil {
		for _, m := range t.Plan.Mutations {
			if slices.ContainsFunc(p.records, func(r row) bool { return r.projected && r.r.ID == m.RecordID }) {
				continue // as it was added
			}
			if _, err := x.exec(`UPDATE record SET projected = 1 WHERE workspace = ? AND id = ? AND NOT forgotten`, t.Workspace, m.RecordID); err != nil {
				return protocol.Task{}, err
			}
		}
	}
	if p.w.Transition != nil {
		if err := x.insertTransition(p.w.Transition, old.seq); err != nil {
			return protocol.Task{}, err
		}
	}
	if p.w.Free && !t.Identity.Hash.IsZero() {
		if _, err := x.exec(`DELETE FROM identity WHERE hash = ? AND task = ?`, t.Identity.Hash[:], old.seq); err != nil {
			return protocol.Task{}, err
		}
	}
	x.keep(&t, old.seq)
	return t, nil
}

// row is the task as it stands: mostly one that was written a moment ago, which
// the writer, being the only one, still knows.
func (x *tx) row(id string) (known, error) {
	if k, ok := x.tasks[id]; ok {
		return k, nil
	}
	var k known
	var raw []byte
	var version int64
	err := x.query(`SELECT seq, doc, version FROM task WHERE id = ?`, []any{id}, &k.seq, &raw, &version)
	if err == nil {
		k.task, err = doc.Task(raw, version)
	}
	return k, err
}

// page is how many due rows one look reads.
const page = 32

// Claim reads due rows page by page and applies what decide makes of each in
// the transaction that read it. A row that cannot be read, or whose write an
// invariant stops, is passed over, and the errors come back beside what was claimed
// behind it.
func (s *Store) Claim(ctx context.Context, now time.Time, limit int, decide func(protocol.Task) (protocol.WriteSet, bool)) ([]protocol.Task, error) {
	// Most looks find nothing, and nothing needs no transaction.
	if at, ok, err := s.NextDue(ctx); err != nil || !ok || at.After(now) {
		return nil, err
	}
	var out []protocol.Task
	var stopped []error
	changes := false
	err := s.write(ctx, func(x *tx) error {
		out, stopped = nil, nil
		at, id := int64(-1<<63), ""
		wrote := map[string]bool{} // one that is due again as it was written is the next look's
		for len(out) < limit {
			ts, broken, err := x.due(now, &at, &id, min(page, limit-len(out)+4))
			if err != nil {
				return err
			}
			stopped = append(stopped, broken...)
			if len(ts)+len(broken) == 0 {
				return nil
			}
			for _, t := range ts {
				if len(out) == limit {
					return nil
				}
				if wrote[t.ID] {
					continue
				}
				w, ok := decide(t)
				if !ok {
					continue
				}
				err := x.one(func(x *tx) error {
					p, err := prepare(w)
					if err != nil {
						return err
					}
					if p.changes() {
						s.fresh.forget()
						changes = true
					}
					got, err := x.apply(p)
					if err == nil {
						out = append(out, got)
						wrote[got.ID] = true
					}
					return err
				})
				if errors.Is(err, protocol.ErrUnavailable) || errors.Is(err, errRedo) {
					return err
				}
				if err != nil {
					stopped = append(stopped, err)
				}
			}
		}
		return nil
	})
	if changes {
		s.fresh.forget()
	}
	if err != nil {
		return nil, err
	}
	return out, errors.Join(stopped...)
}

// due reads a page of due rows after a place, which becomes that of its last. A row
// that cannot be read holds up none behind it.
func (x *tx) due(now time.Time, at *int64, id *string, n int) (ts []protocol.Task, broken []error, err error) {
	err = x.rows(`SELECT due, id, seq, doc, version FROM task WHERE due <= ? AND (due, id) > (?, ?) ORDER BY due, id LIMIT ?`,
		[]any{nanos(now), *at, *id, n}, func(row []driver.Value) error {
			var seq, version int64
			var raw []byte
			for i, d := range []any{at, id, &seq, &raw, &version} {
				if err := assign(d, row[i]); err != nil {
					return err
				}
			}
			t, err := doc.Task(raw, version)
			if err != nil {
				broken = append(broken, fmt.Errorf("%w: the row of task %s cannot be read", protocol.ErrInvariant, *id))
				return nil
			}
			ts = append(ts, t)
			x.know(&t, seq)
			return nil
		})
	return ts, broken, err
}
