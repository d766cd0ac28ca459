// Command mutants proves that the simulation can see: it puts one deliberate
// fault after the other into the source, by go build -overlay, and lets the
// simulation find each by the invariant it breaks, on a seed where the source
// as it is holds every invariant.
//
//	mutants                all of them, on the store in memory
//	mutants -store sqlite  on SQLite files
//	mutants -only NAME     one
//	mutants -every 4       each fourth, another quarter each day
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
)

// programs are the simulation by the store it runs on.
var programs = map[string]string{
	"memory": "./internal/sim/simulate",
	"sqlite": "./server/internal/simulate/run",
}

func main() {
	seed := flag.Uint64("seed", 1, "the first seed that is tried")
	limit := flag.Int("schedules", 20_000, "schedules after which a mutant has survived")
	only := flag.String("only", "", "run the mutants whose names hold this")
	every := flag.Int("every", 1, "run one of so many")
	store := flag.String("store", "memory", "memory or sqlite")
	flag.Parse()
	if err := run(*store, *seed, *limit, *only, *every); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(store string, seed uint64, limit int, only string, every int) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	h := hunt{root: root, program: programs[store], seed: seed, limit: limit}
	if h.program == "" {
		return fmt.Errorf("-store %s: want memory or sqlite", store)
	}
	all, err := mutants(store)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	h.sound = filepath.Join(dir, "simulate")
	if err := h.build(h.sound); err != nil {
		return err
	}
	tried, killed := 0, 0
	day := int(time.Now().Unix() / 86_400)
	for i, m := range all {
		if !strings.Contains(m.name, only) || (i+day)%every != 0 {
			continue
		}
		tried++
		k, err := h.attack(m)
		if err != nil {
			fmt.Printf("mutant=%s breaks=%s SURVIVED %v\n", m.name, m.breaks, err)
			continue
		}
		killed++
		fmt.Printf("mutant=%s invariant=%s seed=%d schedules=%d\n", m.name, k.invariant, k.seed, k.schedules)
	}
	fmt.Printf("mutants=%d killed=%d store=%s\n", tried, killed, store)
	if killed != tried || tried == 0 {
		return errors.New("not every deliberate fault was found")
	}
	return nil
}

// hunt is what mutants are looked for with.
type hunt struct {
	root, program string
	sound         string // the program of the source as it is
	seed          uint64
	limit         int
}

func (h hunt) build(to string, flags ...string) error {
	args := append(append([]string{"build"}, flags...), "-o", to, h.program)
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("it does not build: %w\n%s", err, out)
	}
	return nil
}

// kill is how a mutant was found.
type kill struct {
	invariant string
	seed      uint64
	schedules int
}

func (h hunt) attack(m mutant) (kill, error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return kill{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	overlay, err := m.overlay(h.root, dir)
	if err != nil {
		return kill{}, err
	}
	binary := filepath.Join(dir, "simulate")
	if err := h.build(binary, "-overlay", overlay); err != nil {
		return kill{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, "-want", m.breaks, "-seed", fmt.Sprint(h.seed), "-schedules", fmt.Sprint(h.limit)).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return kill{}, err
	}
	var k kill
	for line := range strings.Lines(string(out)) {
		if _, err := fmt.Sscanf(line, "violation %s seed=%d schedules=%d", &k.invariant, &k.seed, &k.schedules); err == nil && k.invariant == m.breaks {
			if out, err := exec.CommandContext(ctx, h.sound, "-seed", fmt.Sprint(k.seed)).CombinedOutput(); err != nil {
				return kill{}, fmt.Errorf("the source as it is breaks an invariant on seed %d too: %w\n%s", k.seed, err, out)
			}
			return k, nil
		}
	}
	return kill{}, fmt.Errorf("after %d schedules:\n%s", h.limit, out)
}
