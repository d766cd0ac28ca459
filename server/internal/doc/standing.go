package doc

import (
	"fmt"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// What a task is takes most of its document, and most steps change only how it
// stands. A store may write that alone, beside the document as it was: a fifth of
// the bytes.

// SameBody says that two states of a task differ in nothing but how it stands.
// What pointers lead to is never changed, so the same pointer is the same thing.
func SameBody(was, is *protocol.Task) bool {
	return was.ID == is.ID && was.Workspace == is.Workspace && was.Kind == is.Kind && was.Scope == is.Scope && was.Identity == is.Identity &&
		was.Fingerprint == is.Fingerprint && was.Command == is.Command && was.Plan == is.Plan && was.Result == is.Result &&
		was.Account == is.Account && was.Amount == is.Amount && was.Reservation == is.Reservation && was.CreatedAt.Equal(is.CreatedAt)
}

// AppendStanding appends how a task stands to b.
func AppendStanding(b []byte, t *protocol.Task) ([]byte, error) {
	w := &writer{b: append(b, '{')}
	w.mustNumber("version", t.Version)
	ofStanding(w, t)
	return w.end()
}

func ofStanding(w *writer, t *protocol.Task) {
	w.must("state", string(t.State))
	w.mustNumber("run", int64(t.Run))
	w.number("attempts", int64(t.Attempts))
	w.mustNumber("max_attempts", int64(t.MaxAttempts))
	w.number("invalid", int64(t.Invalid))
	if l := &t.Lease; l.Owner != "" || l.Token != "" || !l.Expires.IsZero() {
		w.object("lease", func() {
			w.must("owner", l.Owner)
			w.must("token", l.Token)
			w.mustInstant("expires", l.Expires)
		})
	}
	w.instant("next_attempt", t.NextAttempt)
	if f := t.Failure; f != nil {
		w.object("failure", func() {
			w.must("class", string(f.Class))
			w.must("code", f.Code)
			w.text("message", f.Message)
		})
	}
	w.yes("committed", t.Committed)
	w.must("projection", string(t.Projection))
	w.mustNumber("transitions", int64(t.Transitions))
	w.instant("updated", t.UpdatedAt)
	w.instant("started", t.StartedAt)
	w.instant("completed", t.CompletedAt)
}

// Stand puts how a task stands over what its document says. What was written
// for another version of the row is passed over: whoever knew of documents only
// has written one since. The error holds nothing of it.
func Stand(t *protocol.Task, standing []byte) error {
	var version int64
	is := *t
	is.State, is.Run, is.Attempts, is.MaxAttempts, is.Invalid = "", 0, 0, 0, 0
	is.Lease, is.NextAttempt, is.Failure = protocol.Lease{}, time.Time{}, nil
	is.Committed, is.Projection, is.Transitions = false, "", 0
	is.UpdatedAt, is.StartedAt, is.CompletedAt = time.Time{}, time.Time{}, time.Time{}
	if err := read(standing, func(r *reader, name []byte) {
		if string(name) == "version" {
			version = r.number()
			return
		}
		toTask(r, &is, name)
	}); err != nil {
		return fmt.Errorf("doc: how a task stands cannot be read: %w", err)
	}
	if version == t.Version {
		*t = is
	}
	return nil
}
