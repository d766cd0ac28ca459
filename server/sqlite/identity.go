package sqlite

import (
	"fmt"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/internal/doc"
)

// wary is how many groups take their identities one by one after one that had a
// twin in it: where one comes, more do.
const wary = 32

// takeOver ends the insert of identities. One whose window is over is taken over;
// another one's row stays, and is not counted.
const takeOver = ` ON CONFLICT (hash) DO UPDATE SET task = excluded.task, expires = excluded.expires WHERE identity.expires <= ?`

// hold gives the identity to the task in a row, unless another one holds it
// whose window is not over: that is its twin, and nothing is written then.
//
// Twins are rare. So the identities of a group are taken together at its end, and
// when one of them was held by another task the group is written again.
func (x *tx) hold(t *protocol.Task, seq int64, at time.Time) (*protocol.Task, error) {
	var expires any
	if t.Identity.Window > 0 {
		expires = nanos(t.CreatedAt.Add(t.Identity.Window))
	}
	now := nanos(at)
	if !x.careful && x.wary == 0 {
		// Whose window ends between the times of two of them is a twin here, and
		// judged by its own time when it is alone.
		if p := &x.pending; len(p.identity.args) == 0 || now < p.now {
			p.now = now
		}
		return nil, x.add(&x.pending.identity, t.Identity.Hash[:], seq, expires)
	}
	n, err := x.execAside(x.pending.identity.insert[0], t.Identity.Hash[:], seq, expires, now)
	if err != nil || n > 0 {
		return nil, err
	}
	var raw []byte
	var version int64
	if err := x.query(`SELECT t.doc, t.version FROM identity i JOIN task t ON t.seq = i.task WHERE i.hash = ?`, []any{t.Identity.Hash[:]}, &raw, &version); err != nil {
		return nil, err
	}
	got, err := doc.Task(raw, version)
	if err != nil {
		return nil, err
	}
	return &got, nil
}

// holdPending takes the identities that wait. None of them may be another task's.
func (x *tx) holdPending() error {
	p := &x.pending
	if len(p.identity.args) == 0 {
		return nil
	}
	want := len(p.identity.args) / p.identity.columns
	n, err := x.insert(&p.identity, p.now)
	if err == nil && n != int64(want) {
		x.wary = wary
		err = fmt.Errorf("%w: one of its commands has a twin", errRedo)
	}
	return err
}
