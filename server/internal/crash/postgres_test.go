//go:build unix

package crash_test

import (
	"context"
	"testing"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/server/internal/crash"
	"github.com/memwrite/memwrite-go/server/internal/pgtest"
	"github.com/memwrite/memwrite-go/server/postgres"
	"github.com/memwrite/memwrite-go/server/wakeup"
)

// shared is the store of a server that is one of many.
func shared(ctx context.Context, url string) (crash.Opened, error) {
	broker, err := wakeup.Postgres(url)
	if err != nil {
		return crash.Opened{}, err
	}
	s, err := postgres.Open(ctx, postgres.Options{URL: url, Connections: 6})
	return crash.Opened{Store: s, Wakeups: wakeup.New(sched.Real(), broker, nil)}, err
}

// Three servers on one PostgreSQL, which is killed itself after every third
// round while they write.
func TestCrashOfManyNodes(t *testing.T) { // not parallel: it is timed against kills
	db := pgtest.Start(t)
	run(t, crash.Config{
		Store: "postgres", Nodes: 3, Env: []string{envURL + "=" + db.URL()}, Rounds: *rounds, Log: t.Logf,
		Read: func(ctx context.Context) (snap protocol.Snapshot, err error) {
			s, err := postgres.Open(ctx, postgres.Options{URL: db.URL(), Connections: 2})
			if err != nil {
				return snap, err
			}
			defer s.Close()
			return s.Snapshot(ctx)
		},
		Between: func(_ context.Context, round int) error {
			if round%3 != 2 {
				return nil
			}
			return db.Crash()
		},
	})
}
