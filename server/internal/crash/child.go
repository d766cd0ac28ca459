//go:build unix

package crash

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/internal/service"
	"github.com/memwrite/memwrite-go/server"
)

const (
	envChild = "MEMWRITE_CRASH_CHILD"
	envPoint = "MEMWRITE_CRASH_POINT"
	envTimes = "MEMWRITE_CRASH_TIMES"
	// envAttempts bounds the attempts of a task; unset, no task comes to the
	// end of them.
	envAttempts = "MEMWRITE_CRASH_ATTEMPTS"

	workspace = "default"
	adderKey  = "ms_crash_0123456789"
	writerKey = "fm_crash_0123456789"
)

// IsChild says that this process was started by Run: its TestMain calls Child
// and exits.
func IsChild() bool { return os.Getenv(envChild) != "" }

// Opened is a store with its wake-ups, which may be nil.
type Opened struct {
	Store   protocol.Store
	Wakeups protocol.Wakeups
}

// Child serves until it is killed, or stops at SIGTERM; it returns an exit code.
// open opens the store that the environment names.
func Child(open func(ctx context.Context) (Opened, error)) int {
	if err := child(open); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 1
	}
	return 0
}

func child(open func(ctx context.Context) (Opened, error)) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	d := &death{point: protocol.Point(os.Getenv(envPoint))}
	if n, err := strconv.ParseInt(os.Getenv(envTimes), 10, 64); err == nil {
		d.left.Store(n)
	}
	l, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		return err
	}
	db, err := open(ctx)
	if err != nil {
		return err
	}
	var clock sched.Scheduler // the one that nodes of a store have in common
	if c, ok := db.Store.(interface{ Clock() sched.Scheduler }); ok {
		clock = c.Clock()
	}
	node, err := server.New(ctx, server.Options{
		Store: mortal{db.Store, d}, Scheduler: clock, Wakeups: db.Wakeups, Faults: d, Limits: limits(),
		Keys: []service.Key{
			service.NewKey(adderKey, workspace, service.ServiceMemorySync, service.ScopeMemoryAll),
			service.NewKey(writerKey, workspace, service.ServiceFishMem, service.ScopeMemoryRead, service.ScopeMemoryWrite, service.ScopeOperationsRead),
		},
		Workspaces:      []protocol.Workspace{{ID: workspace, AddsPerMonth: -1, Credits: -1}},
		CheckpointEvery: 100 * time.Millisecond,
	})
	if err != nil {
		return errors.Join(err, db.Store.Close())
	}
	fmt.Println("ready")
	err = node.ServeHandler(ctx, l, 5*time.Second, func(h http.Handler) http.Handler { return mortalHandler(d, h) })
	return errors.Join(err, node.Close())
}

// limits are short, so that what a killed server held is taken up soon.
func limits() engine.Limits {
	attempts, err := strconv.Atoi(os.Getenv(envAttempts))
	if err != nil {
		attempts = 200
	}
	return engine.Limits{
		MaxAttempts: attempts, Lease: 400 * time.Millisecond, RepairEvery: 50 * time.Millisecond,
		BackOff: protocol.BackOff{Base: 10 * time.Millisecond, Cap: 100 * time.Millisecond},
	}
}
