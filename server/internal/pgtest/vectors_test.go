package pgtest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Many clients of the one session see their own schema, and nothing of each
// other's transactions.
func TestVectorsServesManyClients(t *testing.T) {
	t.Parallel()
	for range 4 {
		url := Vectors(t)
		t.Run("", func(t *testing.T) {
			t.Parallel()
			pool, err := pgxpool.New(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			if _, err := pool.Exec(t.Context(), `create table points (id int primary key, v public.vector(2))`); err != nil {
				t.Fatal(err)
			}
			for i := range 20 {
				tx, err := pool.Begin(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := tx.Exec(t.Context(), `insert into points values ($1, $2::text::public.vector)`, i, fmt.Sprintf("[%d,1]", i)); err != nil {
					t.Fatal(err)
				}
				if i%2 == 0 {
					err = tx.Commit(t.Context())
				} else {
					err = tx.Rollback(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
				if _, err := pool.Exec(context.Background(), `select $1::int / 0`, 1); err == nil || !strings.Contains(err.Error(), "22012") {
					t.Fatalf("division by zero gives %v", err)
				}
			}
			var n, nearest int
			if err := pool.QueryRow(t.Context(), `select count(*) from points`).Scan(&n); err != nil || n != 10 {
				t.Errorf("%d points, %v", n, err)
			}
			if err := pool.QueryRow(t.Context(), `select id from points order by v operator(public.<=>) '[6,1]' limit 1`).Scan(&nearest); err != nil || nearest != 6 {
				t.Errorf("the nearest is %d, %v", nearest, err)
			}
		})
	}
}
