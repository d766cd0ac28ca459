package conform

import (
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/memwrite/memwrite-go/conformance"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/mockserver"
	"github.com/memwrite/memwrite-go/server/internal/pgtest"
	"github.com/memwrite/memwrite-go/server/postgres"
	"github.com/memwrite/memwrite-go/server/sqlite"
)

func TestTheDurableStoresKeepEveryPromise(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) func(int64) (protocol.Store, error){
		"sqlite": func(t *testing.T) func(int64) (protocol.Store, error) {
			dir, n := t.TempDir(), atomic.Int64{}
			return func(first int64) (protocol.Store, error) {
				return sqlite.Open(t.Context(), filepath.Join(dir, strconv.FormatInt(n.Add(1), 10)+".db"), sqlite.Options{FirstNumber: first})
			}
		},
		"postgres": func(t *testing.T) func(int64) (protocol.Store, error) {
			pgtest.URL(t) // says so when there is none
			return func(first int64) (protocol.Store, error) {
				return postgres.Open(t.Context(), postgres.Options{URL: pgtest.URL(t), Connections: 6, CallerClock: true, FirstNumber: first})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := mockserver.Run(t, mockserver.OnStore(open(t)))
			report := conformance.Test(t, conformance.Config{
				MemorySync: conformance.Endpoint{URL: srv.URL, Key: srv.MemorySyncKey}, OtherMemorySyncKey: srv.NewKey("other", "memorysync", "memory:*", "projects:read"),
				FishMem: conformance.Endpoint{URL: srv.URL, Key: srv.FishMemKey}, OtherFishMemKey: srv.NewKey("other", "fishmem", "memory:read", "memory:write", "operations:read"),
				ControlURL: srv.URL,
			})
			if n := report.Count(conformance.NotRun); n > 0 {
				t.Errorf("%d checks did not run", n)
			}
			if err := srv.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}
