// Package command is the simulation as a program, for whichever store.
package command

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/memwrite/memwrite-go/internal/sim"
)

// Store is what the schedules are lived through on.
type Store struct {
	Name   string             // as make calls it
	Worker func() *sim.Worker // for one goroutine
	Rate   float64            // schedules a second that are wanted
}

// Main lives through schedules as its flags say, and gives the status for the
// program to end with: 1 where an invariant did not hold.
func Main(store Store) int {
	schedules := flag.Int("schedules", 0, "how many schedules; 0 replays the one of -seed")
	seed := flag.Uint64("seed", 0, "the base seed, or the one seed; 0 draws a fresh one")
	most := flag.Duration("for", 0, "as many schedules as fit into this time")
	replay := flag.Int("replay", 0, "live through twenty seeds so many times each")
	out := flag.String("out", filepath.Join(os.TempDir(), "memwrite-sim"), "where a failure is written")
	workers := flag.Int("workers", runtime.GOMAXPROCS(0), "schedules at once")
	want := flag.String("want", "", "go on until this invariant is broken, and say where")
	flag.Parse()
	debug.SetGCPercent(400) // a schedule leaves a megabyte behind
	if *seed == 0 {
		*seed = rand.Uint64() >> 1
	}
	switch {
	case *replay > 0:
		return replays(store.Worker, *seed, *replay)
	case *schedules == 0 && *most == 0:
		return one(store, *seed, *out)
	}
	fmt.Printf("seed=%d\n", *seed)
	t := sim.Campaign(store.Worker, *seed, *schedules, *most, *workers, *want)
	if t.First == nil {
		t.Print(os.Stdout, store.Rate)
		return 0
	}
	if *want != "" {
		v := t.First.Violation
		fmt.Printf("violation %s seed=%d schedules=%d %s\n", v.Invariant, t.First.Script.Seed, t.Schedules, v.Text)
		return 1
	}
	t.Print(os.Stdout, store.Rate)
	return one(store, t.First.Script.Seed, *out)
}

// one lives through one seed, and makes a failure as small as it gets.
func one(store Store, seed uint64, out string) int {
	h := store.Worker()
	script := sim.NewScript(seed)
	res := h.Run(script, true)
	fmt.Printf("seed=%d steps=%d operations=%d faults=%v log=%016x\n", seed, res.Steps, res.Ops, res.Faults, res.Hash)
	if res.Violation == nil {
		fmt.Println("every invariant holds")
		return 0
	}
	fmt.Printf("violation %v\n", res.Violation)
	write(out, fmt.Sprintf("seed-%d", seed), res)
	small, res := sim.Shrink(h, script, res.Violation.Invariant, 2000)
	fmt.Printf("shrunk to %d operations and %d faults: %v\n", len(small.Ops), len(small.Faults), res.Violation)
	write(out, fmt.Sprintf("seed-%d-shrunk", seed), res)
	fmt.Printf("again: make sim STORE=%s SEED=%d\n", store.Name, seed)
	return 1
}

func write(dir, name string, res *sim.Result) {
	err := os.MkdirAll(dir, 0o755)
	for suffix, f := range map[string]func(*os.File) error{
		".log":  func(w *os.File) error { return sim.WriteLog(w, res) },
		".html": func(w *os.File) error { return sim.WriteTimeline(w, res) },
	} {
		if err != nil {
			break
		}
		path := filepath.Join(dir, name+suffix)
		var w *os.File
		if w, err = os.Create(path); err != nil {
			break
		}
		if err = f(w); err == nil {
			err = w.Close()
		}
		fmt.Println("written", path)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the failure could not be written:", err)
	}
}

func replays(worker func() *sim.Worker, base uint64, times int) int {
	began, failed := time.Now(), 0
	for i := range uint64(20) {
		hash, same := sim.Replay(worker(), base+i, times)
		if !same {
			failed = 1
		}
		fmt.Printf("seed=%d replays=%d log=%016x equal=%v\n", base+i, times, hash, same)
	}
	fmt.Printf("seeds=20 replays=%d differing=%d took=%s\n", times, failed, time.Since(began).Round(time.Millisecond))
	return failed
}
