// Command mutants proves that the simulation can see: it puts one deliberate
// fault after the other into the source, by go build -overlay, and lets the
// simulation find each by the invariant it breaks, on a seed where the source
// as it is holds every invariant.
//
//	mutants              all of them
//	mutants -only NAME   one
//	mutants -every 4     each fourth, another quarter each day
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/memwrite/memwrite-go/internal/sim"
)

func main() {
	seed := flag.Uint64("seed", 1, "the first seed that is tried")
	limit := flag.Int("schedules", 20_000, "schedules after which a mutant has survived")
	only := flag.String("only", "", "run the mutants whose names hold this")
	every := flag.Int("every", 1, "run one of so many")
	flag.Parse()
	if err := run(*seed, *limit, *only, *every); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(seed uint64, limit int, only string, every int) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	all, err := mutants()
	if err != nil {
		return err
	}
	tried, killed := 0, 0
	day := int(time.Now().Unix() / 86_400)
	for i, m := range all {
		if !strings.Contains(m.name, only) || (i+day)%every != 0 {
			continue
		}
		tried++
		k, err := m.attack(root, seed, limit)
		if err != nil {
			fmt.Printf("mutant=%s breaks=%s SURVIVED %v\n", m.name, m.breaks, err)
			continue
		}
		killed++
		fmt.Printf("mutant=%s invariant=%s seed=%d schedules=%d\n", m.name, k.invariant, k.seed, k.schedules)
	}
	fmt.Printf("mutants=%d killed=%d\n", tried, killed)
	if killed != tried || tried == 0 {
		return errors.New("not every deliberate fault was found")
	}
	return nil
}

// kill is how a mutant was found.
type kill struct {
	invariant string
	seed      uint64
	schedules int
}

func (m mutant) attack(root string, seed uint64, limit int) (kill, error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return kill{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	overlay, err := m.overlay(root, dir)
	if err != nil {
		return kill{}, err
	}
	binary := filepath.Join(dir, "simulate")
	if out, err := exec.Command("go", "build", "-overlay", overlay, "-o", binary, "./internal/sim/simulate").CombinedOutput(); err != nil {
		return kill{}, fmt.Errorf("it does not build: %w\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, "-want", m.breaks, "-seed", fmt.Sprint(seed), "-schedules", fmt.Sprint(limit)).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return kill{}, err
	}
	var k kill
	for line := range strings.Lines(string(out)) {
		if _, err := fmt.Sscanf(line, "violation %s seed=%d schedules=%d", &k.invariant, &k.seed, &k.schedules); err == nil && k.invariant == m.breaks {
			if res := sim.NewWorker().Run(sim.NewScript(k.seed), false); res.Violation != nil {
				return kill{}, fmt.Errorf("the source as it is breaks an invariant on seed %d too: %w", k.seed, res.Violation)
			}
			return k, nil
		}
	}
	return kill{}, fmt.Errorf("after %d schedules:\n%s", limit, out)
}
