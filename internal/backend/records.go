package backend

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"time"

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

// deletion is one that was made under a key, and what it deleted.
type deletion struct {
	command protocol.Hash
	ids     []string
}

func (b *Backend) deletedUnder(workspace, key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.deletions[protocol.CommandKey(workspace, key)]
	return ok
}

// Delete makes tombstones. Deletions under a key are remembered by this
// process; its lock also keeps two of one key from both counting a record.
func (b *Backend) Delete(ctx context.Context, workspace string, d service.Deletion) ([]string, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	hash := protocol.CommandKey(workspace, d.Key)
	command := fingerprint(d)
	if d.Key != "" {
		if before, ok := b.deletions[hash]; ok {
			if before.command != command {
				return nil, false, service.ErrConflict
			}
			return before.ids, true, nil
		}
		if _, err := b.engine.Load().TaskByIdentity(ctx, workspace, hash); !errors.Is(err, protocol.ErrNotFound) {
			if err == nil {
				err = service.ErrConflict
			}
			return nil, false, err
		}
	}
	targets, err := b.targets(ctx, workspace, d)
	if err != nil {
		return nil, false, err
	}
	deleted := []string{}
	for _, r := range targets {
		switch err := b.engine.Load().Forget(ctx, r); {
		case err == nil:
			deleted = append(deleted, r.ID)
		case !errors.Is(err, protocol.ErrNotFound):
			return deleted, false, err
		}
	}
	if d.Key != "" && (d.All || len(deleted) > 0) {
		b.deletions[hash] = deletion{command, deleted}
	}
	return deleted, false, nil
}

func (b *Backend) targets(ctx context.Context, workspace string, d service.Deletion) ([]protocol.Record, error) {
	if !d.All {
		var out []protocol.Record
		for _, id := range d.IDs {
			r, err := b.engine.Load().Record(ctx, workspace, protocol.Wire(d.Scope.Service), id)
			if errors.Is(err, protocol.ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			out = append(out, r)
		}
		return out, nil
	}
	q := query(workspace, d.Scope)
	q.Limit = d.Max + 1
	out, err := b.engine.Load().Records(ctx, q)
	if err == nil && len(out) > d.Max {
		err = service.ErrTooMany
	}
	return out, err
}

func fingerprint(d service.Deletion) protocol.Hash {
	ids := slices.Clone(d.IDs)
	slices.Sort(ids)
	doc, _ := json.Marshal(struct {
		Operation string
		IDs       []string
		Scope     service.Scope
		All       bool
	}{d.Operation, ids, d.Scope, d.All})
	return sha256.Sum256(doc)
}

// Usage sums the ledger of a workspace.
func (b *Backend) Usage(ctx context.Context, workspace string) (service.Usage, error) {
	balances, err := b.engine.Load().Usage(ctx, workspace)
	if err != nil {
		return service.Usage{}, refusal(err)
	}
	entries, err := b.engine.Load().Ledger(ctx, workspace)
	if err != nil {
		return service.Usage{}, refusal(err)
	}
	out := service.Usage{Balanced: true}
	for _, balance := range balances {
		a := service.Account{
			Limited: balance.Granted < protocol.Unlimited, Granted: balance.Granted, Available: balance.Available,
			Reserved: balance.Reserved, Settled: balance.Spent,
		}
		for _, e := range entries {
			if e.Kind == protocol.Release && e.Account == balance.Account {
				a.Released += e.Amount
			}
		}
		out.Balanced = out.Balanced && balance.Granted == balance.Available+balance.Reserved+balance.Spent
		if balance.Account.Unit == protocol.Adds {
			now := b.sched.Now().UTC()
			a.ResetsAt = time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC)
			out.Adds = a
		} else {
			out.Credits = a
		}
	}
	return out, nil
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
