package postgres

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// page is how many records are read at once by what reads them all.
const page = 500

// Follow makes the store ready for Changed. It waits for a moment in which
// nobody writes records, the first time; a second call does nothing.
func (s *Store) Follow(ctx context.Context) error {
	return judged(s.once(ctx, `records_changed`, `create index records_changed on records (changed)`))
}

// once runs statements, as one transaction, unless what they make is there. Of
// nodes that start together one does, and the others wait for it.
func (s *Store) once(ctx context.Context, makes string, statements ...string) error {
	there := func(q interface {
		QueryRow(context.Context, string, ...any) pgx.Row
	}) (ok bool, err error) {
		err = q.QueryRow(ctx, `select to_regclass($1) is not null`, makes).Scan(&ok)
		return ok, err
	}
	return s.again(ctx, func() error {
		if ok, err := there(s.pool); ok || err != nil {
			return err
		}
		return pgx.BeginFunc(ctx, s.pool, func(t pgx.Tx) error {
			if _, err := t.Exec(ctx, settings); err != nil { // writers wait behind who waits for a lock
				return err
			}
			if _, err := t.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended($1 || '.' || current_schema(), 0))`, makes); err != nil {
				return err
			}
			if ok, err := there(t); ok || err != nil {
				return err
			}
			for _, sql := range statements {
				if _, err := t.Exec(ctx, sql); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// look is one row of what Changed reads: a record, or none.
type look struct {
	low, at  string
	rebuilds int64
	has      bool
	record   protocol.Record
}

func scanLook(row pgx.CollectableRow) (l look, err error) {
	var at, id *string
	var projected *bool
	var body []byte
	if err := row.Scan(&l.low, &l.rebuilds, &at, &id, &projected, &body); err != nil || id == nil {
		return l, err
	}
	l.has, l.at = true, *at
	l.record, err = recordOf(*id, *projected, body)
	return l, err
}

// Changed gives f every record that was made or changed at a mark or behind it,
// as it is now, and the mark to go on from: what ends later is at that one or
// behind it. Some are given again. rebuilds counts how often Rebuilt was called.
// The greatest mark gives no record. Follow comes first.
func (s *Store) Changed(ctx context.Context, since uint64, f func(protocol.Record) error) (next uint64, rebuilds int64, err error) {
	mark, id := strconv.FormatUint(since, 10), ""
	for first := true; ; first = false {
		// A database that was restored from a dump may hold numbers that its
		// own transactions have yet to reach: those are no changes.
		rows, err := list(ctx, s, scanLook, `with look as materialized
			(select pg_snapshot_xmin(pg_current_snapshot()) as low, pg_snapshot_xmax(pg_current_snapshot()) as high)
			select look.low::text, (select generation from rebuilds), r.changed::text, `+recordColumns+` from look left join lateral
				(select * from records where changed >= $1::text::xid8 and (changed > $1::text::xid8 or id > $2) and changed < look.high
				order by changed, id limit $3) r on true`, mark, id, page)
		if err != nil {
			return 0, 0, err
		}
		if first {
			rebuilds = rows[0].rebuilds
			if next, err = strconv.ParseUint(rows[0].low, 10, 64); err != nil {
				return 0, 0, err
			}
		}
		for _, row := range rows {
			if !row.has {
				return next, rebuilds, nil
			}
			if err := f(row.record); err != nil {
				return 0, 0, err
			}
			mark, id = row.at, row.record.ID
		}
		if len(rows) < page {
			return next, rebuilds, nil
		}
	}
}

// Rebuilt tells those that follow to make anew what they have made.
func (s *Store) Rebuilt(ctx context.Context) error {
	return judged(s.again(ctx, func() error {
		_, err := s.pool.Exec(ctx, `update rebuilds set generation = generation + 1`)
		return err
	}))
}

// EachLive gives every record that is not forgotten and not over at now to f, a
// page at a time, and stops at f's first error.
func (s *Store) EachLive(ctx context.Context, now time.Time, f func(protocol.Record) error) error {
	return s.eachPage(ctx, now, ``, func(rs []protocol.Record) error {
		for _, r := range rs {
			if err := f(r); err != nil {
				return err
			}
		}
		return nil
	})
}

// eachPage gives the live records for which a condition holds in the order of
// their ids.
func (s *Store) eachPage(ctx context.Context, now time.Time, condition string, f func([]protocol.Record) error) error {
	for after := ""; ; {
		rs, err := list(ctx, s, scanRecord, `select `+recordColumns+` from records r where r.id > $1 and not r.forgotten
			and (r.expires_at = 0 or r.expires_at > $2) `+condition+` order by r.id limit $3`, after, nanos(now), page)
		if err != nil {
			return err
		}
		if len(rs) > 0 {
			if err := f(rs); err != nil {
				return err
			}
			after = rs[len(rs)-1].ID
		}
		if len(rs) < page {
			return nil
		}
	}
}
