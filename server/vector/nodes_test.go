package vector_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/memwrite/memwrite-go/server/postgres"
	"github.com/memwrite/memwrite-go/server/vector"
)

// database is one node's store.
func database(t *testing.T, url string) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), postgres.Options{URL: url, Connections: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func follow(t *testing.T, s *postgres.Store) *vector.Followed {
	t.Helper()
	if err := s.Follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	x, err := vector.Follow(t.Context(), s, s.Clock(), func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Close)
	return x
}

func pgvector(t *testing.T, s *postgres.Store) *postgres.Vectors {
	t.Helper()
	v, err := s.Vectors(t.Context(), func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v
}

// counted is how many vectors a database has.
func counted(t *testing.T, url string) (n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if err := conn.QueryRow(ctx, `select count(embedding) from record_vectors_1`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
