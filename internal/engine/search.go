package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// Match is a record with its nearness to a query, from 0 to 1.
type Match struct {
	Record protocol.Record
	Score  float64
}

// Search gives the records of a scope that are near to a query, the nearest
// first and of two as near the newer, at most limit. keep may be nil. Records
// whose projection is still pending are not found yet.
//
// An index changes how they are found and not which: without one, and when it
// fails, every record of the scope is compared.
func (e *Engine) Search(ctx context.Context, q protocol.RecordQuery, query string, limit int, keep func(protocol.Record) bool) ([]Match, error) {
	q.Now, q.Projected, q.Limit, q.After = e.sched.Now(), true, 0, nil
	if s, ok := e.project.(protocol.Searcher); ok && limit > 0 {
		out, err := e.lookUp(ctx, s, q, query, limit, keep)
		if err == nil || ctx.Err() != nil {
			return out, err
		}
		e.failed(err)
	}
	rs, err := e.store.Records(ctx, q)
	if err != nil {
		return nil, err
	}
	var out []Match
	for _, r := range rs {
		if keep != nil && !keep(r) {
			continue
		}
		if s := e.compare.Score(query, r.Text); s > 0 {
			out = append(out, Match{r, s})
		}
	}
	slices.SortFunc(out, nearer)
	return out[:min(limit, len(out))], nil
}

// nearer orders matches; records that were made at once go by their id.
func nearer(a, b Match) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), b.Record.CreatedAt.Compare(a.Record.CreatedAt), cmp.Compare(b.Record.ID, a.Record.ID))
}

// lookUp asks the index for more and more until nothing it left out can be
// among the first limit: some of what it gives may be gone, or not kept.
func (e *Engine) lookUp(ctx context.Context, s protocol.Searcher, q protocol.RecordQuery, query string, limit int, keep func(protocol.Record) bool) ([]Match, error) {
	var out []Match
	seen := map[string]bool{}
	for n := limit + 16; ; n *= 4 {
		near, rest, err := s.Nearest(ctx, q, query, n)
		if err != nil {
			return nil, err
		}
		for _, h := range near {
			if seen[h.ID] {
				continue
			}
			seen[h.ID] = true
			r, err := e.store.Record(ctx, q.Workspace, h.ID)
			if errors.Is(err, protocol.ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if r.Forgotten {
				e.withdraw(ctx, r)
			}
			if !found(&r, q) || (keep != nil && !keep(r)) {
				continue
			}
			if s := e.compare.Score(query, r.Text); s > 0 {
				out = append(out, Match{r, s})
			}
		}
		slices.SortFunc(out, nearer)
		if rest <= 0 || (len(out) >= limit && out[limit-1].Score > rest) {
			return out[:min(limit, len(out))], nil
		}
	}
}

// found holds a record against a query as a store does.
func found(r *protocol.Record, q protocol.RecordQuery) bool {
	if !r.Projected || !r.Live(q.Now) || r.Wire != q.Wire {
		return false
	}
	for _, n := range [...][2]string{{q.Scope.Tenant, r.Scope.Tenant}, {q.Scope.Project, r.Scope.Project}, {q.Scope.EndUser, r.Scope.EndUser},
		{q.Scope.UserID, r.Scope.UserID}, {q.Scope.AgentID, r.Scope.AgentID}, {q.Scope.RunID, r.Scope.RunID}} {
		if n[0] != "" && n[0] != n[1] {
			return false
		}
	}
	return true
}
