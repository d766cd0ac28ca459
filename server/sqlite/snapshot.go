package sqlite

import (
	"context"
	"database/sql"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/internal/doc"
)

// Snapshot reads everything at one moment, in one reader's transaction.
func (s *Store) Snapshot(ctx context.Context) (out protocol.Snapshot, err error) {
	read, err := s.readers.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return out, failed(err)
	}
	defer func() { _ = read.Rollback() }()
	if out.Workspaces, err = all(ctx, read, `SELECT doc FROM workspace ORDER BY id`, func(r scanner) (protocol.Workspace, error) {
		var raw []byte
		if err := r.Scan(&raw); err != nil {
			return protocol.Workspace{}, err
		}
		return doc.Workspace(raw)
	}); err != nil {
		return out, err
	}
	if out.Tasks, err = all(ctx, read, `SELECT doc, version FROM task ORDER BY workspace, created, id`, taskOf); err != nil {
		return out, err
	}
	type held struct {
		hash protocol.Hash
		task string
	}
	ids, err := all(ctx, read, `SELECT i.hash, t.id FROM identity i JOIN task t ON t.seq = i.task`, func(r scanner) (h held, err error) {
		var raw []byte
		err = r.Scan(&raw, &h.task)
		copy(h.hash[:], raw)
		return h, err
	})
	if err != nil {
		return out, err
	}
	out.Identities = make(map[protocol.Hash]string, len(ids))
	for _, h := range ids {
		out.Identities[h.hash] = h.task
	}
	if out.Records, err = all(ctx, read, `SELECT doc, projected FROM record ORDER BY created, coalesce(number, 0), id`, recordOf); err != nil {
		return out, err
	}
	if out.Entries, err = all(ctx, read, entryColumns+`ORDER BY e.workspace, e.seq`, entryOf); err != nil {
		return out, err
	}
	if out.Balances, err = all(ctx, read, `SELECT workspace, unit, period, granted, available, reserved, spent FROM balance`, func(r scanner) (b protocol.Balance, err error) {
		var unit string
		err = r.Scan(&b.Account.Workspace, &unit, &b.Account.Period, &b.Granted, &b.Available, &b.Reserved, &b.Spent)
		b.Account.Unit = protocol.Unit(unit)
		return b, err
	}); err != nil {
		return out, err
	}
	out.Transitions, err = all(ctx, read, transitionColumns+`ORDER BY x.position`, transitionOf)
	return out, err
}

func all[T any](ctx context.Context, tx *sql.Tx, q string, each func(scanner) (T, error)) ([]T, error) {
	rows, err := tx.QueryContext(ctx, q)
	return collect(rows, err, each)
}
