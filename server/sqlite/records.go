package sqlite

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/internal/doc"
)

// row is a record with its document.
type row struct {
	r         *protocol.Record
	raw       string
	projected bool
}

func rowsOf(rs []protocol.Record) ([]row, error) {
	out := make([]row, len(rs))
	for i := range rs {
		raw, err := doc.OfRecord(&rs[i])
		if err != nil {
			return nil, err
		}
		out[i] = row{&rs[i], string(raw), rs[i].Projected}
	}
	return out, nil
}

func (x *tx) insertRecords(rs []row, task int64) error {
	for _, row := range rs {
		r := row.r
		if err := x.place(r.Workspace); err != nil {
			return err
		}
		var number any
		if r.Number != 0 {
			number = r.Number
		}
		if err := x.add(&x.pending.record, r.ID, number, r.Workspace, string(r.Wire), task, nanos(r.CreatedAt), expires(r),
			row.projected, r.Forgotten,
			r.Scope.Tenant, r.Scope.Project, r.Scope.EndUser, r.Scope.UserID, r.Scope.AgentID, r.Scope.RunID, x.topicOf(r), row.raw); err != nil {
			return err
		}
	}
	return nil
}

func expires(r *protocol.Record) any {
	if r.ExpiresAt.IsZero() {
		return nil
	}
	return nanos(r.ExpiresAt)
}

// topic is what equal facts have in common, as a hash: an index of texts would
// keep them.
func topic(workspace string, w protocol.Wire, s protocol.Scope, typ, key string) []byte {
	h := sha256.New()
	for _, part := range []string{workspace, string(w), s.Tenant, s.Project, s.EndUser, s.UserID, s.AgentID, s.RunID, typ, key} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write([]byte(part))
	}
	return h.Sum(nil)[:16]
}

// PutRecord replaces a record under the same id and owner; what it said before
// is overwritten.
func (s *Store) PutRecord(ctx context.Context, r protocol.Record) error {
	rows, err := rowsOf([]protocol.Record{r})
	if err != nil {
		return err
	}
	s.fresh.forget()
	defer s.fresh.forget()
	return s.write(ctx, func(x *tx) error { return x.replace(rows[0]) })
}

// record is a row as it stands.
func (x *tx) record(workspace, id string) (r protocol.Record, seq int64, err error) {
	var raw []byte
	if err := x.query(`SELECT seq, doc, projected FROM record WHERE workspace = ? AND id = ?`, []any{workspace, id}, &seq, &raw, &r.Projected); err != nil {
		return r, 0, err
	}
	r, err = doc.Record(raw, r.Projected)
	return r, seq, err
}

func (x *tx) replace(now row) error {
	old, seq, err := x.record(now.r.Workspace, now.r.ID)
	if err == nil && old.Forgotten {
		err = protocol.ErrNotFound
	}
	if err != nil {
		return err
	}
	r := now.r
	if old.Number != r.Number || old.Wire != r.Wire || old.TaskID != r.TaskID || old.Scope != r.Scope || !old.CreatedAt.Equal(r.CreatedAt) {
		return fmt.Errorf("%w: record %s changes whose it is", protocol.ErrInvariant, r.ID)
	}
	_, err = x.exec(`UPDATE record SET expires = ?, projected = ?, forgotten = ?, topic = ?, doc = ? WHERE seq = ?`,
		expires(r), r.Projected, r.Forgotten, x.topicOf(r), now.raw, seq)
	return err
}

// bury puts tombstones in the place of their records, which must all be there.
func (x *tx) bury(rs []row) error {
	seen := make(map[string]bool, len(rs))
	for _, row := range rs {
		if seen[row.r.ID] || !row.r.Forgotten {
			return fmt.Errorf("%w: record %s cannot be forgotten by this", protocol.ErrInvariant, row.r.ID)
		}
		seen[row.r.ID] = true
		err := x.replace(row)
		if errors.Is(err, protocol.ErrNotFound) {
			return protocol.ErrStale
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// supersede makes a tombstone of a record whose place another one takes; one
// that is not there is passed over.
func (x *tx) supersede(workspace string, s protocol.Supersession, at time.Time) error {
	old, _, err := x.record(workspace, s.ID)
	if errors.Is(err, protocol.ErrNotFound) || (err == nil && old.Forgotten) {
		return nil
	}
	if err != nil {
		return err
	}
	rows, err := rowsOf([]protocol.Record{old.Supersede(s.By, at)})
	if err != nil {
		return err
	}
	return x.replace(rows[0])
}
