package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// Waiting counts the tasks that have not ended, by state, from the index of
// what is due.
func (s *Store) Waiting(ctx context.Context) (map[protocol.State]int, error) {
	type count struct {
		state string
		n     int
	}
	counts, err := list(ctx, s, func(row pgx.CollectableRow) (c count, err error) { err = row.Scan(&c.state, &c.n); return c, err },
		`select state, count(*) from tasks where due_at is not null and state <> 'SUCCEEDED' group by state`)
	out := map[protocol.State]int{}
	for _, c := range counts {
		out[protocol.State(c.state)] = c.n
	}
	return out, err
}
