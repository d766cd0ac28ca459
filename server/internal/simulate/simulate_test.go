package simulate

import (
	"flag"
	"testing"

	"github.com/memwrite/memwrite-go/internal/sim"
)

var (
	seed      = flag.Uint64("seed", 1, "the base seed")
	schedules = flag.Int("schedules", 40, "how many schedules")
)

// The same seed has to give the same log as in memory.
func TestTheSameLogOnSQLite(t *testing.T) {
	t.Parallel()
	onFile, inMemory := NewWorker(t.TempDir()), sim.NewWorker()
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
