// Package simulate lives through the schedules of the simulation on the store
// that keeps a file: the same seed has to give the same log as in memory.
package simulate

import (
	"flag"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sim"
	"github.com/memwrite/memwrite-go/server/sqlite"
)

var (
	seed      = flag.Uint64("seed", 1, "the base seed")
	schedules = flag.Int("schedules", 40, "how many schedules")
)

func TestTheSameLogOnSQLite(t *testing.T) {
	t.Parallel()
	dir, made := t.TempDir(), 0
	onFile, inMemory := sim.NewWorker(), sim.NewWorker()
	onFile.Open = func(first int64) protocol.Store {
		made++
		s, err := sqlite.Open(t.Context(), filepath.Join(dir, strconv.Itoa(made)+".db"), sqlite.Options{FirstNumber: first, SkipCheck: true})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	n := *schedules
	if testing.Short() {
		n = min(n, 5)
	}
	for i := range n {
		script := sim.NewScript(*seed + uint64(i))
		want := inMemory.Run(script, false)
		got := onFile.Run(script, false)
		if got.Violation != nil {
			t.Errorf("seed %d: %v", script.Seed, got.Violation)
		}
		if got.Hash != want.Hash {
			t.Errorf("seed %d: %d operations in %d steps, and in memory %d in %d: another log", script.Seed, got.Ops, got.Steps, want.Ops, want.Steps)
		}
	}
}
