// Command simulate lives through schedules of faults and stops at the first
// invariant that does not hold.
//
//	simulate -schedules 100000 -seed 7   many, from a base seed on
//	simulate -seed 7                     that one, and shrinks it if it fails
//	simulate -for 1m                     as many as fit, from a fresh seed
//	simulate -replay 100                 twenty seeds, each so often: equal logs
package main

import (
	"os"

	"github.com/memwrite/memwrite-go/internal/sim"
	"github.com/memwrite/memwrite-go/internal/sim/command"
)

func main() { os.Exit(command.Main(command.Store{Name: "memory", Worker: sim.NewWorker, Rate: 300})) }
