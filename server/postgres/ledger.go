package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// queueBooks locks the accounts of the books and reads what they hold, and which
// of their grants are there. The lock covers the grants too: whoever adds one
// holds the account's.
func (s *Store) queueBooks(b *pgx.Batch, books *books) {
	if len(books.accounts) == 0 {
		return
	}
	var ws, units, periods []string
	fresh := false
	for _, a := range books.accounts {
		ws, units, periods = append(ws, a.Workspace), append(units, string(a.Unit)), append(periods, a.Period)
		fresh = fresh || !s.seen.has(openingID(a))
	}
	if fresh {
		b.Queue(`insert into balances (workspace, unit, period, opened, granted, available, reserved, spent)
			select workspace, unit, period, false, 0, 0, 0, 0 from unnest($1::text[], $2::text[], $3::text[]) as u(workspace, unit, period)
			order by 1, 2, 3 on conflict do nothing`, ws, units, periods)
	}
	b.Queue(`select b.workspace, b.unit, b.period, b.granted, b.available, b.reserved, b.spent from balances b
		join unnest($1::text[], $2::text[], $3::text[]) as u(workspace, unit, period) using (workspace, unit, period)
		order by b.workspace, b.unit, b.period for update of b`, ws, units, periods).Query(func(rows pgx.Rows) error {
		return each(rows, func(r pgx.CollectableRow) error {
			var x protocol.Balance
			err := r.Scan(&x.Account.Workspace, &x.Account.Unit, &x.Account.Period, &x.Granted, &x.Available, &x.Reserved, &x.Spent)
			books.set(x)
			return err
		})
	})
	var ask []string
	for _, id := range books.grants {
		if s.seen.has(id) {
			books.granted[id] = true
		} else {
			ask = append(ask, id)
		}
	}
	if len(ask) > 0 {
		b.Queue(`select id from entries where id = any($1::text[]) and of_id = ''`, ask).Query(func(rows pgx.Rows) error {
			return each(rows, func(r pgx.CollectableRow) error {
				var id string
				err := r.Scan(&id)
				books.granted[id] = true
				return err
			})
		})
	}
}

// queueOpen reads the reservations that sets end, and those that they would
// make a second time.
func (s *Store) queueOpen(b *pgx.Batch, books *books, ws []*protocol.WriteSet) {
	var ids []string
	for i := range ws {
		for _, e := range ws[i].Entries {
			switch e.Kind {
			case protocol.Settle, protocol.Release:
				ids = append(ids, e.Of)
			case protocol.Reserve:
				ids = append(ids, e.ID)
			}
		}
	}
	if len(ids) == 0 {
		return
	}
	b.Queue(`select e.id, e.amount from entries e where e.id = any($1::text[]) and e.of_id = '' and e.kind = 'reserve'
		and not exists (select 1 from entries o where o.of_id = e.id and o.of_id <> '')`, ids).Query(func(rows pgx.Rows) error {
		return each(rows, func(r pgx.CollectableRow) error {
			var id string
			var amount int64
			err := r.Scan(&id, &amount)
			books.open[id] = amount
			return err
		})
	})
}

// commit writes what was decided.
func (s *Store) commit(ctx context.Context, t *tx, c *changes) error {
	err := t.commit(ctx, c.queue)
	c.sent()
	if err != nil {
		return err
	}
	for _, a := range c.books.accounts {
		// Entries are only ever added: what was seen once is there for good.
		if id := openingID(a); c.books.granted[id] {
			s.seen.add(id)
		}
	}
	return nil
}

func openingID(a protocol.Account) string { return protocol.Opening(protocol.Workspace{}, a, zero).ID }

// Post adds entries on their own.
func (s *Store) Post(ctx context.Context, entries ...protocol.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	for _, e := range entries {
		if e.Account.Workspace != entries[0].Account.Workspace {
			return protocol.ErrNotFound
		}
	}
	if err := s.known(ctx, entries[0].Account.Workspace); err != nil {
		return err
	}
	return judged(s.transact(ctx, func(ctx context.Context, t *tx) error {
		c := &changes{books: newBooks(entries)}
		if err := t.round(ctx, func(b *pgx.Batch) {
			s.queueBooks(b, c.books)
			s.queueOpen(b, c.books, []*protocol.WriteSet{{Entries: entries}})
		}); err != nil {
			return err
		}
		if err := c.books.post(entries); err != nil {
			return err
		}
		return s.commit(ctx, t, c)
	}))
}
