package postgres

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/internal/doc"
)

// accepted is the answer of Accept.
type accepted struct {
	task protocol.Task
	twin bool
}

// proposal is an acceptance on its way.
type proposal struct {
	protocol.Acceptance
	found *found
}

// found is what a former batch found out about a proposal.
type found struct {
	takeover bool // the window of the identity's holder is over: lock the identity before judging
	unsure   bool // the connection was lost at the commit: the task may be there already
}

// Accept writes a command together with those of others that come at the same
// moment: each is accepted, a twin or refused for itself.
func (s *Store) Accept(ctx context.Context, a protocol.Acceptance) (protocol.Task, bool, error) {
	if err := s.known(ctx, a.Task.Workspace); err != nil {
		return protocol.Task{}, false, err
	}
	a.Task.Version = 1
	doc.UTC(&a.Task)
	if err := protocol.CheckTask(&a.Task); err != nil {
		return protocol.Task{}, false, err
	}
	got, err := s.accepts.do(ctx, proposal{a, new(found)})
	return got.task, got.twin, err
}

// acceptBatch serves a batch. Of those with one identity only the first is
// judged: the others are its twins, or come again.
func (s *Store) acceptBatch(ctx context.Context, ps []proposal) []result[accepted] {
	out := make([]result[accepted], len(ps))
	order := make([]int, 0, len(ps))
	for i := range ps {
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return bytes.Compare(ps[i].Task.Identity.Hash[:], ps[j].Task.Identity.Hash[:])
	})
	firsts := order[:0:0]
	for n, i := range order {
		h := ps[i].Task.Identity.Hash
		if n == 0 || h.IsZero() || h != ps[order[n-1]].Task.Identity.Hash {
			firsts = append(firsts, i)
		}
	}
	if !s.acceptBlind(ctx, ps, firsts, out) {
		s.acceptAll(ctx, ps, firsts, out)
	}
	first := -1
	for _, i := range order {
		h := ps[i].Task.Identity.Hash
		switch {
		case h.IsZero():
		case first < 0 || h != ps[first].Task.Identity.Hash:
			first = i
		case out[first].err == nil && !out[first].again && recognised(&out[first].out.task, &ps[i].Acceptance):
			out[i].out = accepted{out[first].out.task, true}
		default:
			out[i].again = true
		}
	}
	return out
}

// recognised says that the identity's window is not over.
func recognised(holder *protocol.Task, a *protocol.Acceptance) bool {
	w := holder.Identity.Window
	return w == 0 || a.At.Before(holder.CreatedAt.Add(w))
}

// acceptAll accepts those in one transaction. When the database refuses a row,
// each is tried alone, so that the one it belongs to fails alone.
func (s *Store) acceptAll(ctx context.Context, ps []proposal, which []int, out []result[accepted]) {
	once := func(ctx context.Context, t *tx) error { return s.acceptOnce(ctx, t, ps, which, out) }
	err := s.transact(ctx, once)
	for try := 0; try < tries && errors.Is(err, errOutcomeUnknown); try++ {
		for _, i := range which {
			ps[i].found.unsure = true
		}
		err = s.transact(ctx, once)
	}
	switch {
	case err == nil:
	case refused(err) && len(which) > 1:
		for _, i := range which {
			out[i] = result[accepted]{}
			s.acceptAll(ctx, ps, []int{i}, out)
		}
	default:
		for _, i := range which {
			out[i] = result[accepted]{err: judged(err)}
		}
	}
}

// acceptOnce: the first round takes the identities that are free, waiting for
// whoever is about to take one, reads the twins in a statement of its own (one
// statement would not see a row that came after it began) and locks the
// accounts; the second writes.
func (s *Store) acceptOnce(ctx context.Context, t *tx, ps []proposal, which []int, out []result[accepted]) error {
	var hashes, takeovers [][]byte
	var ids, buried, unsure []string
	var sets [][]protocol.Entry
	for _, i := range which {
		out[i] = result[accepted]{}
		if ps[i].found.unsure {
			unsure = append(unsure, ps[i].Task.ID)
		}
		if h := ps[i].Task.Identity.Hash; !h.IsZero() {
			hashes, ids = append(hashes, h[:]), append(ids, ps[i].Task.ID)
			if ps[i].found.takeover {
				takeovers = append(takeovers, h[:])
			}
		}
		sets = append(sets, ps[i].Entries)
		for _, r := range ps[i].Tombstones {
			buried = append(buried, r.ID)
		}
	}
	c := &changes{books: newBooks(sets...)}
	won := map[protocol.Hash]bool{}
	twins := map[protocol.Hash]protocol.Task{}
	records := map[string]protocol.Record{}
	ours := map[string]protocol.Task{}
	err := t.round(ctx, func(b *pgx.Batch) {
		if len(hashes) > 0 {
			b.Queue(`insert into identities (hash, task_id) select * from unnest($1::bytea[], $2::text[]) as u(hash, task) order by u.hash
				on conflict (hash) do nothing returning hash`, hashes, ids).Query(func(rows pgx.Rows) error {
				return each(rows, func(row pgx.CollectableRow) error {
					h, err := scanHash(row)
					won[h] = true
					return err
				})
			})
			if len(takeovers) > 0 {
				b.Queue(`select 1 from identities where hash = any($1::bytea[]) order by hash for update`, takeovers)
			}
			b.Queue(`select i.hash, `+taskColumns+` from identities i join tasks t on t.id = i.task_id where i.hash = any($1::bytea[])`, hashes).
				Query(func(rows pgx.Rows) error {
					return each(rows, func(row pgx.CollectableRow) error {
						var h []byte
						task, err := scanTask(row, &h)
						twins[protocol.Hash(h)] = task
						return err
					})
				})
		}
		if len(unsure) > 0 {
			b.Queue(`select `+taskColumns+` from tasks t where t.id = any($1::text[])`, unsure).Query(func(rows pgx.Rows) error {
				return each(rows, func(row pgx.CollectableRow) error {
					task, err := scanTask(row)
					ours[task.ID] = task
					return err
				})
			})
		}
		queueRecordLocks(b, buried, records)
		s.queueBooks(b, c.books)
	})
	if err != nil {
		return err
	}
	for _, i := range which {
		if task, there := ours[ps[i].Task.ID]; there && ps[i].found.unsure {
			out[i].out = accepted{task, false}
			continue
		}
		judge(&ps[i], won, twins, records, c, &out[i])
	}
	if len(c.created) == 0 {
		return nil // nothing was written: the rollback frees the locks
	}
	return s.commit(ctx, t, c)
}

// judge decides about one of the batch.
func judge(p *proposal, won map[protocol.Hash]bool, twins map[protocol.Hash]protocol.Task, records map[string]protocol.Record, c *changes, out *result[accepted]) {
	task, h := &p.Task, p.Task.Identity.Hash
	if !h.IsZero() && !won[h] {
		twin, there := twins[h]
		switch {
		case !there:
			out.again = true // its failure freed it between the two statements
			return
		case recognised(&twin, &p.Acceptance):
			out.out = accepted{twin, true}
			return
		case !p.found.takeover:
			p.found.takeover, out.again = true, true
			return
		}
	}
	err := buriable(p, records)
	if err == nil {
		err = c.books.post(p.Entries)
	}
	if err != nil {
		out.err = err
		if won[h] {
			c.dropped = append(c.dropped, holder{h, task.ID})
		}
		return
	}
	if !h.IsZero() && !won[h] {
		c.taken = append(c.taken, holder{h, task.ID})
	}
	c.created = append(c.created, task)
	for _, r := range p.Tombstones {
		records[r.ID] = r
		c.edited = append(c.edited, r)
	}
	c.records = append(c.records, p.Records...)
	c.history = append(c.history, p.Transitions...)
	out.out = accepted{*task, false}
}

// buriable says why tombstones cannot all take the place of their records.
func buriable(p *proposal, records map[string]protocol.Record) error {
	seen := map[string]bool{}
	for i := range p.Tombstones {
		now := &p.Tombstones[i]
		r, ok := records[now.ID]
		if !ok || r.Forgotten || r.Workspace != p.Task.Workspace {
			return protocol.ErrStale
		}
		if seen[r.ID] || !now.Forgotten || !sameOwner(&r, now) {
			return broken("record %s cannot be forgotten by this", r.ID)
		}
		seen[r.ID] = true
	}
	return nil
}
