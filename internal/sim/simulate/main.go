// Command simulate lives through schedules of faults and stops at the first
// invariant that does not hold.
//
//	simulate -schedules 100000 -seed 7   many, from a base seed on
//	simulate -seed 7                     that one, and shrinks it if it fails
//	simulate -for 1m                     as many as fit, from a fresh seed
//	simulate -replay 100                 twenty seeds, each so often: equal logs
package main

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

func main() {
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
		os.Exit(replays(*seed, *replay))
	case *schedules == 0 && *most == 0:
		os.Exit(one(*seed, *out))
	}
	fmt.Printf("seed=%d\n", *seed)
	t := sim.Campaign(*seed, *schedules, *most, *workers, *want)
	if t.First == nil {
		t.Print(os.Stdout)
		return
	}
	if *want != "" {
		v := t.First.Violation
		fmt.Printf("violation %s seed=%d schedules=%d %s\n", v.Invariant, t.First.Script.Seed, t.Schedules, v.Text)
		os.Exit(1)
	}
	t.Print(os.Stdout)
	os.Exit(one(t.First.Script.Seed, *out))
}

// one lives through one seed, and makes a failure as small as it gets.
func one(seed uint64, out string) int {
	h := sim.NewWorker()
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
	fmt.Printf("again: make sim SEED=%d\n", seed)
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

func replays(base uint64, times int) int {
	began, failed := time.Now(), 0
	for i := range uint64(20) {
		hash, same := sim.Replay(base+i, times)
		if !same {
			failed = 1
		}
		fmt.Printf("seed=%d replays=%d log=%016x equal=%v\n", base+i, times, hash, same)
	}
	fmt.Printf("seeds=20 replays=%d differing=%d took=%s\n", times, failed, time.Since(began).Round(time.Millisecond))
	return failed
}
