package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
)

var errCrashed = errors.New("sim: the client died")

// client makes its operations one after the other.
func (w *world) client(index int) {
	for i := range w.script.Ops {
		op := &w.script.Ops[i]
		if op.Client != index {
			continue
		}
		if op.Pause > 0 {
			w.pass(op.Pause)
		}
		w.ops++
		w.shortage()
		w.operate(op)
	}
	w.through()
}

// shortage takes away what a workspace has left, for a while.
func (w *world) shortage() {
	f := w.strike(atMoney)
	if f == nil {
		return
	}
	w.fired(f, "")
	unit := protocol.Credits
	if f.Kind == QuotaGone {
		unit = protocol.Adds
	}
	index := int(f.Draw % uint64(w.script.World.Workspaces))
	b := w.audit.accounts[protocol.AccountAt(workspaceID(index), unit, w.sched.now)]
	if b.Available == 0 || b.Available > 1<<40 {
		return // nothing there yet, or no bound
	}
	w.grant(index, unit, -b.Available)
	w.sched.goAs("bank", func() {
		w.sleep(f.Span)
		w.grant(index, unit, b.Available)
	})
}

// operate makes one operation, which a fault may cut short: the caller then
// comes back with the same names, as if it had read them from its own store.
func (w *world) operate(op *Op) {
	ctx, cancel := context.WithCancelCause(w.ctx)
	defer cancel(nil)
	f := w.strike(atCall)
	if f != nil {
		w.fired(f, "")
		if f.Kind == ClientTimeout {
			var release context.CancelFunc
			ctx, release = w.sched.WithTimeout(ctx, f.Span, nil)
			defer release()
		} else {
			w.crashes++
			w.sched.goAs("fault", func() { w.sleep(f.Span / 8); cancel(errCrashed) })
		}
	}
	x := w.wishes[op.Intent]
	w.direct(ctx, op, x)
	if f != nil && f.Kind == ClientCrash {
		w.direct(w.ctx, op, x)
	}
}

// alive is a node that is up, or nil.
func (w *world) alive(draw uint64) *node {
	for i := range w.nodes {
		if n := w.nodes[(int(draw%16)+i)%len(w.nodes)]; !n.dead {
			return n
		}
	}
	return nil
}

// direct makes an operation on an engine, without a wire.
func (w *world) direct(ctx context.Context, op *Op, x *wish) {
	n := w.alive(op.Draw)
	if n == nil {
		w.note("op", string(op.Verb), "no node is up", 0)
		return
	}
	var err error
	switch op.Verb {
	case Send:
		err = x.submit(ctx, n)
	case Await:
		err = x.await(ctx, n, time.Duration(op.Draw%uint64(20*time.Second)))
	case Redrive:
		err = x.redrive(ctx, n)
	case Look:
		_, err = n.engine.Events(ctx, x.ws, "", nil, 5)
		if err == nil {
			_, err = n.engine.Usage(ctx, x.ws)
		}
	case Forget:
		err = x.forget(ctx, n)
	}
	w.note("op", string(op.Verb), fmt.Sprintf("%s: %v", x.name, err), int64(x.Number))
}

// submit sends a wish once.
func (x *wish) submit(ctx context.Context, n *node) error {
	got, err := n.engine.Submit(ctx, x.ws, x.command())
	switch {
	case err == nil:
		x.told(got.Task.ID)
		if got.Task.State == protocol.Succeeded {
			x.stored(&got.Task)
		}
	case errors.Is(err, protocol.ErrConflict):
		x.conflicted()
	}
	return err
}

func (x *wish) await(ctx context.Context, n *node, most time.Duration) error {
	if x.task == "" {
		return nil
	}
	began := x.world.sched.now
	t, err := n.engine.Await(ctx, x.ws, x.task, most, engineEnded)
	switch {
	case err == nil && !t.State.Terminal():
		x.world.audit.fail("E6", "a wait for %s ended with a task that is %s", x, t.State)
	case err == nil && t.State == protocol.Succeeded:
		x.stored(&t)
	case errors.Is(err, sched.ErrElapsed) && x.world.sched.now.Sub(began) < most:
		x.world.audit.fail("E6", "a wait for %s ended %v early", x, most-x.world.sched.now.Sub(began))
	}
	return err
}

func engineEnded(t protocol.Task) bool { return t.State.Terminal() }

func (x *wish) redrive(ctx context.Context, n *node) error {
	if x.task == "" {
		return nil
	}
	t, err := n.engine.Redrive(ctx, x.ws, x.task)
	if err == nil {
		x.told(t.ID)
	}
	return err
}

// forget takes away one record that the wish stored.
func (x *wish) forget(ctx context.Context, n *node) error {
	s := x.world.audit.tasks[x.task]
	if s == nil || s.row.Result == nil || len(s.row.Result.Records) == 0 {
		return nil
	}
	c := protocol.Command{Kind: protocol.Delete, Scope: s.row.Scope}
	_, err := n.engine.Delete(ctx, x.ws, c, func(ctx context.Context) ([]protocol.Record, error) {
		r, err := n.engine.Record(ctx, x.ws, s.row.Kind.Wire(), s.row.Result.Records[0].ID)
		if errors.Is(err, protocol.ErrNotFound) {
			return nil, nil
		}
		return []protocol.Record{r}, err
	})
	return err
}

// stored is the answer that a wish is stored: the records that the answer
// names are there, and they are its own (E1).
func (x *wish) stored(t *protocol.Task) {
	a := x.world.audit
	if t.Result == nil {
		a.fail("E1", "%s SUCCEEDED without a result", x)
		return
	}
	x.done = true
	for _, e := range t.Result.Records {
		r, err := x.world.store.Record(x.world.ctx, x.ws, e.ID)
		switch {
		case err != nil:
			a.fail("E1", "%s was told of record %s, which is not there", x, e.ID)
		case r.TaskID != t.ID && !e.Existing:
			a.fail("E1", "%s was told of record %s, which is task %s's", x, e.ID, r.TaskID)
		}
	}
}

// fulfil sends a wish until it is stored. Nothing goes wrong any more, so it
// takes a few rounds (E6).
func (w *world) fulfil(x *wish) {
	for range 12 {
		n := w.nodes[x.Number%len(w.nodes)]
		err := x.submit(w.ctx, n)
		if x.moot {
			return
		}
		if err == nil {
			err = x.await(w.ctx, n, time.Hour)
		}
		if err == nil {
			if row := w.audit.tasks[x.task].row; row.State == protocol.Failed && row.Kind == protocol.Infer && row.Command == nil {
				x.moot = true // nobody redrove it in time, and its key is used up
				return
			}
		}
		if err == nil && w.audit.tasks[x.task].row.State == protocol.Failed && x.Kind == WantInfer {
			err = x.redrive(w.ctx, n)
		}
		if err == nil && x.done && w.audit.tasks[x.task].row.State == protocol.Succeeded {
			return
		}
		w.pass(time.Second)
	}
	w.audit.fail("E6", "%s is not stored although nothing goes wrong any more", x)
}

// reader reads the history of a workspace a few rows at a time, whenever it
// comes by, and has to see every row once (I11).
type reader struct {
	world     *world
	workspace string
	seen      []string
	after     int64
}

func (r *reader) read() {
	w := r.world
	for !w.over {
		r.page(1 + w.sched.rng.IntN(7))
		w.pass(sched.Jitter(w.sched, 40*time.Second))
	}
	for r.page(50) > 0 { // what is left
	}
}

func (r *reader) page(limit int) int {
	trs, err := r.world.store.Transitions(r.world.ctx, r.workspace, r.after, limit)
	if err != nil {
		return 0
	}
	for _, tr := range trs {
		if tr.Position <= r.after {
			r.world.audit.fail("I11", "a reader sees transition %s again", tr.ID)
		}
		r.after = tr.Position
		r.seen = append(r.seen, tr.ID)
	}
	return len(trs)
}
