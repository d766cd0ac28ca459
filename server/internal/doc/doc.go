// Package doc is the form in which a durable store keeps tasks and records: one
// JSON document a row, with names that stay when the code's own change.
//
// What a store looks for, or decides a write by, has a column beside it. The
// version of a task and the projection of a record are columns alone, so that a
// document can be written before the row it replaces has been read.
package doc

import (
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// instant is a time as it is stored: UTC, without the machine's own counter,
// so that what is read back equals what was written.
func instant(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.Round(0).UTC()
}

// UTC puts the times of a task into the form in which they come back.
func UTC(t *protocol.Task) {
	for _, at := range []*time.Time{&t.Lease.Expires, &t.NextAttempt, &t.CreatedAt, &t.UpdatedAt, &t.StartedAt, &t.CompletedAt} {
		*at = instant(*at)
	}
}
