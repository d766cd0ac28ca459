//go:build unix

package crash_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/internal/crash"
	"github.com/memwrite/memwrite-go/server/sqlite"
)

var rounds = flag.Int("rounds", 6, "how often a server is killed")

const (
	envDB     = "MEMWRITE_CRASH_DB"
	envURL    = "MEMWRITE_CRASH_DATABASE_URL"
	envMutant = "MEMWRITE_CRASH_MUTANT"
)

func TestMain(m *testing.M) {
	if crash.IsChild() {
		os.Exit(crash.Child(func(ctx context.Context) (crash.Opened, error) {
			if url := os.Getenv(envURL); url != "" {
				return shared(ctx, url)
			}
			s, err := sqlite.Open(ctx, os.Getenv(envDB), sqlite.Options{})
			return crash.Opened{Store: mutant(os.Getenv(envMutant), s)}, err
		}))
	}
	os.Exit(m.Run())
}

// config is one server on a SQLite file.
func config(t *testing.T, rounds int, env ...string) crash.Config {
	db := filepath.Join(t.TempDir(), "memwrite.db")
	return crash.Config{
		Store: "sqlite", Env: append(env, envDB+"="+db), Rounds: rounds, Log: t.Logf,
		Read: func(ctx context.Context) (snap protocol.Snapshot, err error) {
			s, err := sqlite.Open(ctx, db, sqlite.Options{})
			if err != nil {
				return snap, err
			}
			defer s.Close()
			return s.Snapshot(ctx)
		},
	}
}

func TestCrash(t *testing.T) { // not parallel: it is timed against kills
	run(t, config(t, *rounds))
}

func run(t *testing.T, c crash.Config) {
	t.Helper()
	r, err := crash.Run(t.Context(), c)
	fmt.Println(r)
	if err != nil || !r.Clean() {
		t.Errorf("%+v, %v", r, err)
	}
	if c.Rounds >= 2*len(crash.Points) {
		for _, p := range crash.Points {
			if r.Fired[p] == 0 {
				t.Errorf("no server died at %s", p)
			}
		}
	}
}
