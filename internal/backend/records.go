package backend

import (
	"context"
	"errors"
	"time"

	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/service"
)

func query(workspace string, s service.Scope) protocol.RecordQuery {
	return protocol.RecordQuery{Workspace: workspace, Wire: protocol.Wire(s.Service), Scope: scopeOf(s)}
}

// Records lists a scope, newest first.
func (b *Backend) Records(ctx context.Context, workspace string, scope service.Scope, page service.Page) ([]service.Record, error) {
	q := query(workspace, scope)
	q.After, q.Limit = place(page), page.Limit
	records, err := b.engine.Load().Records(ctx, q)
	if err != nil {
		return nil, refusal(err)
	}
	out := make([]service.Record, len(records))
	for i, r := range records {
		out[i] = recordView(r)
	}
	return out, nil
}

// Record reads one by its opaque id.
func (b *Backend) Record(ctx context.Context, workspace, svc, id string) (service.Record, error) {
	r, err := b.engine.Load().Record(ctx, workspace, protocol.Wire(svc), id)
	if err != nil {
		return service.Record{}, refusal(err)
	}
	return recordView(r), nil
}

// RecordByNumber reads one by its number.
func (b *Backend) RecordByNumber(ctx context.Context, workspace string, n int64) (service.Record, error) {
	r, err := b.engine.Load().RecordByNumber(ctx, workspace, n)
	if err != nil {
		return service.Record{}, refusal(err)
	}
	return recordView(r), nil
}

// Search ranks a scope.
func (b *Backend) Search(ctx context.Context, workspace string, scope service.Scope, text string, limit int) ([]service.Record, error) {
	found, err := b.engine.Load().Search(ctx, query(workspace, scope), text, limit, nil)
	if err != nil {
		return nil, refusal(err)
	}
	out := make([]service.Record, len(found))
	for i, m := range found {
		out[i] = recordView(m.Record)
		out[i].Score = m.Score
	}
	return out, nil
}

// Delete makes tombstones. A deletion of the FishMem wire is an operation like a
// write: all of it happens or nothing, and its key names it for good. Forgetting
// on the other wire has no identity, and takes what is there.
func (b *Backend) Delete(ctx context.Context, workspace string, d service.Deletion) ([]string, bool, error) {
	e := b.engine.Load()
	if d.Scope.Service == service.ServiceMemorySync {
		deleted, err := forget(ctx, e, workspace, d.IDs)
		return deleted, false, err
	}
	c := protocol.Command{Kind: protocol.DeleteAll, Scope: scopeOf(d.Scope), Key: d.Key}
	find := func(ctx context.Context) ([]protocol.Record, error) {
		q := query(workspace, d.Scope)
		q.Limit = d.Max + 1
		found, err := e.Records(ctx, q)
		if err == nil && len(found) > d.Max {
			err = service.ErrTooMany
		}
		return found, err
	}
	if !d.All {
		c.Kind, c.Target = protocol.Delete, d.IDs[0]
		find = func(ctx context.Context) ([]protocol.Record, error) {
			r, err := e.Record(ctx, workspace, protocol.FishMem, c.Target)
			return []protocol.Record{r}, err
		}
	}
	got, err := e.Delete(ctx, workspace, c, find)
	if err != nil {
		return nil, false, refusal(err)
	}
	deleted := make([]string, len(got.Task.Result.Records))
	for i, r := range got.Task.Result.Records {
		deleted[i] = r.ID
	}
	return deleted, got.Replayed, nil
}

func forget(ctx context.Context, e *engine.Engine, workspace string, ids []string) ([]string, error) {
	deleted := []string{}
	for _, id := range ids {
		r, err := e.Record(ctx, workspace, protocol.MemorySync, id)
		if err == nil {
			err = e.Forget(ctx, r)
		}
		switch {
		case err == nil:
			deleted = append(deleted, id)
		case !errors.Is(err, protocol.ErrNotFound):
			return deleted, err
		}
	}
	return deleted, nil
}

// Usage sums the ledger of a workspace. All of it comes from one read: a balance
// from one moment beside the rows of another would show what never was.
func (b *Backend) Usage(ctx context.Context, workspace string) (service.Usage, error) {
	opened, err := b.engine.Load().Usage(ctx, workspace)
	if err != nil {
		return service.Usage{}, refusal(err)
	}
	entries, err := b.engine.Load().Ledger(ctx, workspace)
	if err != nil {
		return service.Usage{}, refusal(err)
	}
	out := service.Usage{Balanced: true}
	for _, o := range opened {
		a, balanced := accountOf(o, entries)
		out.Balanced = out.Balanced && balanced
		if o.Account.Unit == protocol.Adds {
			now := b.sched.Now().UTC()
			a.ResetsAt = time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC)
			out.Adds = a
		} else {
			out.Credits = a
		}
	}
	return out, nil
}

// accountOf adds up the rows of an account, in whatever order they come; one
// without rows is as it was opened. It is balanced when no side is negative and
// no reservation ended twice.
func accountOf(opened protocol.Balance, entries []protocol.Entry) (service.Account, bool) {
	sums := map[protocol.EntryKind]int64{}
	ended := map[string]bool{}
	once := true
	for _, e := range entries {
		if e.Account != opened.Account {
			continue
		}
		sums[e.Kind] += e.Amount
		if e.Of != "" {
			once = once && !ended[e.Of]
			ended[e.Of] = true
		}
	}
	if len(sums) == 0 {
		sums[protocol.Grant] = opened.Granted
	}
	granted, settled, released := sums[protocol.Grant], sums[protocol.Settle], sums[protocol.Release]
	reserved := sums[protocol.Reserve] - settled - released
	a := service.Account{
		Limited: granted < protocol.Unlimited, Granted: granted, Available: granted - reserved - settled,
		Reserved: reserved, Settled: settled, Released: released,
	}
	return a, once && a.Available >= 0 && a.Reserved >= 0
}

// Backlog counts what waits and what is dead.
func (b *Backend) Backlog(ctx context.Context, workspace string) (service.Backlog, error) {
	tasks, err := b.engine.Load().Tasks(ctx, workspace)
	if err != nil {
		return service.Backlog{}, refusal(err)
	}
	var out service.Backlog
	for _, t := range tasks {
		if t.Kind.Wire() != protocol.FishMem {
			continue
		}
		switch t.State {
		case protocol.Failed:
			out.Dead++
		case protocol.Succeeded:
			if t.Projection == protocol.ProjectionPending {
				out.ProjectionsPending++
			}
		default:
			out.Pending++
			if out.OldestPending.IsZero() || t.CreatedAt.Before(out.OldestPending) {
				out.OldestPending = t.CreatedAt
			}
		}
	}
	return out, nil
}
