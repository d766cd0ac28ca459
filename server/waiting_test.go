package server_test

import (
	"maps"
	"path/filepath"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server"
	"github.com/memwrite/memwrite-go/server/internal/pgtest"
	"github.com/memwrite/memwrite-go/server/postgres"
	"github.com/memwrite/memwrite-go/server/sqlite"
)

func TestDurableStoresCountWhatWaits(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) (protocol.Store, error){
		"sqlite": func(t *testing.T) (protocol.Store, error) {
			return sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "memwrite.db"), sqlite.Options{})
		},
		"postgres": func(t *testing.T) (protocol.Store, error) {
			return postgres.Open(t.Context(), postgres.Options{URL: pgtest.URL(t), Connections: 2, CallerClock: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, err := open(t)
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			w := protocol.Workspace{ID: "default", AddsPerMonth: -1, Credits: -1}
			if err := store.PutWorkspace(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
			for _, key := range []string{"a", "b", "c"} {
				c := protocol.Command{Kind: protocol.Infer, Key: key, Scope: protocol.Scope{UserID: "sam"}, Text: "My team ships releases every Thursday."}
				if _, _, err := store.Accept(t.Context(), protocol.Accept(protocol.Proposal{Workspace: w, Command: &c, TaskID: "task_" + key, MaxAttempts: 5, Now: now})); err != nil {
					t.Fatal(err)
				}
			}
			_, err = store.Claim(t.Context(), now, 1, func(task protocol.Task) (protocol.WriteSet, bool) {
				ws, _, write := protocol.Claim(task, "runner", "token", time.Minute, now)
				return ws, write
			})
			if err != nil {
				t.Fatal(err)
			}
			got, err := store.(server.Counter).Waiting(t.Context())
			if err != nil || !maps.Equal(got, map[protocol.State]int{protocol.Pending: 2, protocol.Running: 1}) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}
