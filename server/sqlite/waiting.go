package sqlite

import (
	"context"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// Waiting counts the tasks that have not ended, by state, from the index of
// what is due.
func (s *Store) Waiting(ctx context.Context) (map[protocol.State]int, error) {
	type count struct {
		state string
		n     int
	}
	counts, err := list(ctx, s, `SELECT state, count(*) FROM task WHERE due IS NOT NULL AND state <> 'SUCCEEDED' GROUP BY state`, nil,
		func(row scanner) (c count, err error) { err = row.Scan(&c.state, &c.n); return c, err })
	out := map[protocol.State]int{}
	for _, c := range counts {
		out[protocol.State(c.state)] = c.n
	}
	return out, err
}
