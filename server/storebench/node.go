package storebench

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/service"
	"github.com/memwrite/memwrite-go/internal/store/memory"
	"github.com/memwrite/memwrite-go/server"
)

// Key is accepted by a Node on MemorySync's wire.
const Key = "ms_bench_0123456789"

// Node is a server to measure a whole call on.
type Node struct{ node *server.Node }

// NewNode starts a server with the settings it has in use; without a store it
// keeps everything in memory.
func NewNode(ctx context.Context, s protocol.Store) (*Node, error) {
	if s == nil {
		s = memory.New(1)
	}
	n, err := server.New(ctx, server.Options{Store: s,
		Keys:       []service.Key{service.NewKey(Key, "bench", service.ServiceMemorySync, service.ScopeMemoryAll)},
		Workspaces: []protocol.Workspace{{ID: "bench", AddsPerMonth: -1, Credits: -1}},
		Limits:     engine.Limits{Runners: 16}, // as serve has it
	})
	return &Node{n}, err
}

// Serve answers until ctx is done, and closes the store then.
func (n *Node) Serve(ctx context.Context, l net.Listener) error {
	return errors.Join(n.node.Serve(ctx, l, 5*time.Second), n.node.Close())
}
