package postgres_test

import (
	"testing"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/store/storetest"
	"github.com/memwrite/memwrite-go/server/internal/pgtest"
	"github.com/memwrite/memwrite-go/server/postgres"
)

// open makes an empty store on the times of its callers.
func open(t testing.TB, url string) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), postgres.Options{URL: url, Connections: 4, CallerClock: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) protocol.Store { return open(t, pgtest.URL(t)) })
}
