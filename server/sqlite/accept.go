package sqlite

import (
	"context"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/internal/doc"
)

// Accept writes a new command, or finds its twin: the identity's row says which.
func (s *Store) Accept(ctx context.Context, a protocol.Acceptance) (protocol.Task, bool, error) {
	t := a.Task
	doc.UTC(&t)
	t.Version = 1
	raw, err := doc.OfTask(&t)
	if err != nil {
		return protocol.Task{}, false, err
	}
	records, err := rowsOf(a.Records)
	if err != nil {
		return protocol.Task{}, false, err
	}
	graves, err := rowsOf(a.Tombstones)
	if err != nil {
		return protocol.Task{}, false, err
	}
	if len(graves) > 0 {
		s.fresh.forget()
		defer s.fresh.forget()
	}
	sound := protocol.CheckTask(&t)
	var twin *protocol.Task
	err = s.write(ctx, func(x *tx) error {
		twin = nil
		if err := x.place(t.Workspace); err != nil {
			return err
		}
		seq, err := x.next()
		if err != nil {
			return err
		}
		if !t.Identity.Hash.IsZero() {
			if twin, err = x.hold(&t, seq, a.At); err != nil || twin != nil {
				return err
			}
		}
		if sound != nil {
			return sound
		}
		if err := x.insertTask(&t, seq, string(raw)); err != nil {
			return err
		}
		if err := x.bury(graves); err != nil {
			return err
		}
		if err := x.post(a.Entries, t.ID, seq); err != nil {
			return err
		}
		if err := x.insertRecords(records, seq); err != nil {
			return err
		}
		for i := range a.Transitions {
			if err := x.insertTransition(&a.Transitions[i], seq); err != nil {
				return err
			}
		}
		x.keep(&t, seq)
		return nil
	})
	switch {
	case err != nil:
		return protocol.Task{}, false, err
	case twin != nil:
		return *twin, true, nil
	}
	return t, false, nil
}

// next is the row a new task gets.
func (x *tx) next() (int64, error) {
	err := x.lastOf(&x.last.task, `SELECT coalesce(max(seq), 0) FROM task`)
	return x.last.task + 1, err
}

func (x *tx) insertTask(t *protocol.Task, seq int64, raw string) error {
	if x.pending.first == 0 {
		x.pending.first = seq
	}
	err := x.add(&x.pending.task, seq, t.ID, t.Workspace, string(t.Kind), string(t.State), t.Lease.Token, due(t), nanos(t.CreatedAt), raw)
	if err == nil {
		x.last.task = seq
	}
	return err
}

func (x *tx) insertTransition(tr *protocol.Transition, task int64) error {
	if err := x.lastOf(&x.last.position, `SELECT coalesce(max(n), 0) FROM (SELECT (SELECT max(position) FROM transition WHERE workspace = w.id) n FROM workspace w)`); err != nil {
		return err
	}
	x.last.position++
	if first := (protocol.Transition{Number: 1, Run: 1, To: protocol.Pending, ID: tr.ID, TaskID: tr.TaskID, Workspace: tr.Workspace, At: tr.At}); *tr == first {
		return x.add(&x.pending.begin, tr.Workspace, x.last.position, task, stamp(tr.At))
	}
	return x.add(&x.pending.transition, tr.Workspace, x.last.position, task, tr.Number, tr.Run, tr.Attempt, string(tr.From), string(tr.To), string(tr.Class), tr.Code, stamp(tr.At))
}

// lastOf reads a number that was given last, unless it is known.
func (x *tx) lastOf(n *int64, q string) error {
	if *n > 0 {
		return nil
	}
	return x.query(q, nil, n)
}

// due is when somebody has to look at the task, or NULL.
func due(t *protocol.Task) any {
	if at, ok := t.Due(); ok {
		return nanos(at)
	}
	return nil
}

// stamp is a time in a column that is only read.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func unstamp(s string) (time.Time, error) { return time.Parse(time.RFC3339Nano, s) }
