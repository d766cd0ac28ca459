package worker

import (
	"context"

	"github.com/memwrite/memwrite-go"
)

// Watcher takes over inferred writes that were accepted and have not ended. A
// receipt is not a memory: an event can still end FAILED, and once the message
// is acknowledged nobody but the Watcher will see it. So Watch must have kept
// the write durably before it returns nil; an error leaves the message with the
// broker.
//
// What is gained is that no delivery is open while the service extracts; what
// is lost is that the broker no longer knows of the write. [Journal] is a
// Watcher that keeps its writes in a file.
type Watcher interface {
	Watch(ctx context.Context, a Accepted) error
}

// Accepted is a write whose event has not ended.
type Accepted struct {
	Receipt memwrite.Receipt `json:"receipt"`
	Source  string           `json:"source,omitempty"`
	Data    []byte           `json:"data"` // the message as it was delivered
}
