package postgres_test

import (
	"testing"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/store/storetest"
	"github.com/memwrite/memwrite-go/server/internal/pgtest"
)

// Behind a pooler in transaction mode each transaction has another session than
// the one before, and the store does not notice.
func TestStoreBehindAPooler(t *testing.T) {
	t.Parallel()
	pooler := pgtest.Pool(t, 2)
	storetest.Run(t, func(t *testing.T) protocol.Store { return open(t, pooler.Database(t)) })
}

// Many callers at once on many connections share two sessions.
func TestAPoolerSpreadsTransactions(t *testing.T) {
	t.Parallel()
	pooler := pgtest.Pool(t, 2)
	url := pooler.Database(t)
	a, b := open(t, url), open(t, url)
	w := space("w", -1)
	must(t, a.PutWorkspace(t.Context(), w))
	together(16, func(i int) {
		s := a
		if i%2 == 1 {
			s = b
		}
		for n := range 10 {
			accept(t, s, w, name("%d-%d", i, n))
		}
	})
	if got := pooler.Sessions(t, url); got != 2 {
		t.Errorf("%d sessions served 8 connections, want 2", got)
	}
	if snap := check(t, a); len(snap.Tasks) != 160 {
		t.Errorf("%d tasks, want 160", len(snap.Tasks))
	}
}
