// Command run is internal/sim/simulate on SQLite files, in memory where the
// machine has a file system for that.
package main

import (
	"fmt"
	"os"

	"github.com/memwrite/memwrite-go/internal/sim"
	"github.com/memwrite/memwrite-go/internal/sim/command"
	"github.com/memwrite/memwrite-go/server/internal/simulate"
)

func main() {
	under := "/dev/shm"
	if _, err := os.Stat(under); err != nil {
		under = os.TempDir()
	}
	dir, err := os.MkdirTemp(under, "memwrite-sim-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "simulate:", err)
		os.Exit(2)
	}
	status := command.Main(command.Store{Name: "sqlite", Worker: func() *sim.Worker { return simulate.NewWorker(dir) }, Rate: 30})
	_ = os.RemoveAll(dir)
	os.Exit(status)
}
