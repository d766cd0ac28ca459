package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/internal/doc"
)

func recordOf(r scanner) (protocol.Record, error) {
	var raw []byte
	var projected bool
	if err := r.Scan(&raw, &projected); err != nil {
		return protocol.Record{}, err
	}
	return doc.Record(raw, projected)
}

func (s *Store) Record(ctx context.Context, workspace, id string) (protocol.Record, error) {
	if r, ok, err := s.fresh.get(workspace, id); ok {
		return r, err
	}
	return s.record(ctx, `SELECT doc, projected FROM record WHERE workspace = ? AND id = ?`, workspace, id)
}

func (s *Store) RecordByNumber(ctx context.Context, workspace string, n int64) (protocol.Record, error) {
	return s.record(ctx, `SELECT doc, projected FROM record WHERE workspace = ? AND number = ?`, workspace, n)
}

func (s *Store) record(ctx context.Context, q string, args ...any) (protocol.Record, error) {
	var raw []byte
	var projected bool
	if err := s.one(ctx, q, args, &raw, &projected); err != nil {
		return protocol.Record{}, err
	}
	return doc.Record(raw, projected)
}

// Records reads along the index of the first name the scope has, and holds the
// others against each row.
func (s *Store) Records(ctx context.Context, q protocol.RecordQuery) ([]protocol.Record, error) {
	// The index of a name is used only if the query says what the index says.
	var named string
	switch sc := q.Scope; {
	case q.Wire == protocol.MemorySync && sc.EndUser != "":
		named = "end_user"
	case q.Wire == protocol.MemorySync:
		return nil, nil
	case sc.UserID != "":
		named = "user_id"
	case sc.AgentID != "":
		named = "agent_id"
	case sc.RunID != "":
		named = "run_id"
	default:
		return nil, nil
	}
	where := []string{"workspace = ?", named + " <> ''", "NOT forgotten", "wire = ?", "(expires IS NULL OR expires > ?)"}
	args := []any{q.Workspace, string(q.Wire), nanos(q.Now)}
	for _, f := range []struct{ column, value string }{
		{"tenant", q.Scope.Tenant}, {"project", q.Scope.Project}, {"end_user", q.Scope.EndUser},
		{"user_id", q.Scope.UserID}, {"agent_id", q.Scope.AgentID}, {"run_id", q.Scope.RunID},
	} {
		if f.value != "" {
			where, args = append(where, f.column+" = ?"), append(args, f.value)
		}
	}
	if q.Projected {
		where = append(where, "projected")
	}
	where, args = after(where, args, q.After)
	return list(ctx, s, `SELECT doc, projected FROM record WHERE `+strings.Join(where, " AND ")+` ORDER BY created DESC, id DESC LIMIT ?`,
		append(args, bound(q.Limit)), recordOf)
}

func (s *Store) Similar(ctx context.Context, workspace string, w protocol.Wire, sc protocol.Scope, typ, key string, now time.Time) ([]protocol.Record, error) {
	hash := topic(workspace, w, sc, typ, key)
	if !s.tx.topics.may(hash) {
		return nil, nil
	}
	var out []protocol.Record
	err := s.quick.do(ctx, func(x *tx) error {
		return x.rows(`SELECT doc, projected FROM record WHERE topic = ? AND (expires IS NULL OR expires > ?) ORDER BY created, seq`,
			[]any{hash, nanos(now)}, func(row []driver.Value) error {
				var raw []byte
				var projected bool
				if err := errors.Join(assign(&raw, row[0]), assign(&projected, row[1])); err != nil {
					return err
				}
				r, err := doc.Record(raw, projected)
				out = append(out, r)
				return err
			})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// EachLive gives every record that is not forgotten and not over at now to f,
// the oldest first, a page at a time, and stops at f's first error.
func (s *Store) EachLive(ctx context.Context, now time.Time, f func(protocol.Record) error) error {
	type numbered struct {
		seq int64
		r   protocol.Record
	}
	const page = 500
	for last := int64(0); ; {
		rows, err := list(ctx, s, `SELECT seq, doc, projected FROM record WHERE seq > ? AND NOT forgotten AND (expires IS NULL OR expires > ?) ORDER BY seq LIMIT ?`,
			[]any{last, nanos(now), page}, func(sc scanner) (numbered, error) {
				var x numbered
				var raw []byte
				var projected bool
				err := sc.Scan(&x.seq, &raw, &projected)
				if err == nil {
					x.r, err = doc.Record(raw, projected)
				}
				return x, err
			})
		if err != nil {
			return err
		}
		for _, x := range rows {
			if err := f(x.r); err != nil {
				return err
			}
			last = x.seq
		}
		if len(rows) < page {
			return nil
		}
	}
}
