package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
)

var errCrashed = errors.New("sim: the client died")

// client makes its operations one after the other.
func (w *world) client(index int) {
	p := w.newProcess(fmt.Sprintf("client%d", index+1))
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
		p = w.operate(p, op)
	}
	w.through()
}

// shortage takes away what a workspace has left, for a while.
func (w *world) shortage() {
	f := w.strike(atMoney)
	if f == nil {
		return
	}
	unit := protocol.Credits
	if f.Kind == QuotaGone {
		unit = protocol.Adds
	}
	index := int(f.Draw % uint64(w.script.World.Workspaces))
	b := w.audit.accounts[protocol.AccountAt(workspaceID(index), unit, w.sched.now)]
	if b.Available == 0 || b.Available > 1<<40 {
		return // nothing there yet, or no bound
	}
	w.fired(f, "")
	w.grant(index, unit, -b.Available)
	w.sched.goAs("bank", func() {
		w.sleep(f.Span)
		w.grant(index, unit, b.Available)
	})
}

// operate makes one operation, which a fault may cut short: the caller then
// comes back with the same names, as if it had read them from its own store.
func (w *world) operate(p *process, op *Op) *process {
	ctx, cancel := context.WithCancelCause(w.ctx)
	defer cancel(nil)
	f := w.strike(atCall)
	if f != nil {
		if f.Kind == ClientTimeout {
			var release context.CancelFunc
			ctx, release = w.sched.WithTimeout(ctx, f.Span, nil)
			defer release()
		} else {
			w.sched.goAs("fault", func() { w.sleep(f.Span); cancel(errCrashed) })
		}
	}
	x := w.wishes[op.Intent]
	w.make(ctx, p, op, x)
	if f == nil || ctx.Err() == nil {
		return p // it was through before anything happened
	}
	w.fired(f, "")
	if f.Kind == ClientCrash {
		w.crashes++
		p = w.newProcess(p.name)
		w.make(w.ctx, p, op, x)
	}
	return p
}

func (w *world) make(ctx context.Context, p *process, op *Op, x *wish) {
	var err error
	how := "sdk"
	if op.Direct {
		how = "direct"
		err = w.direct(ctx, op, x)
	} else {
		err = p.through(ctx, op, x)
	}
	if !w.log.keep {
		w.note("op", string(op.Verb), how, int64(x.Number))
		return
	}
	w.note("op", string(op.Verb), how, int64(x.Number))
	w.log.lines[len(w.log.lines)-1].More = fmt.Sprintf("%s %s %s: %v", how, x.Kind, x.name, err)
}

// alive is a node that is up, or nil.
func (w *world) alive(draw uint64) *node {
	for i := range w.nodes {
		if n := w.nodes[(int(draw%16)+i)%len(w.nodes)]; !n.dead && !n.stopping {
			return n
		}
	}
	return nil
}

// direct makes an operation on an engine, without a wire.
func (w *world) direct(ctx context.Context, op *Op, x *wish) error {
	n := w.alive(op.Draw)
	if n == nil {
		return errDown
	}
	switch op.Verb {
	case Send:
		return x.submit(ctx, n)
	case Await:
		return x.await(ctx, n, time.Duration(op.Draw%uint64(20*time.Second)))
	case Redrive:
		return x.redrive(ctx, n)
	case Forget:
		return x.forget(ctx, n)
	}
	_, err := n.engine.Events(ctx, x.ws, "", nil, 5)
	if err == nil {
		_, err = n.engine.Usage(ctx, x.ws)
	}
	return err
}

// submit sends a wish once.
func (x *wish) submit(ctx context.Context, n *node) error {
	c := x.command()
	wish := engine.Wish{}
	if c.Kind == protocol.MemorySyncAdd && x.Number%2 == 0 {
		wish.Wait = 25 * time.Second // as the service does it
	}
	got, err := n.engine.SubmitWith(ctx, x.ws, c, wish)
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
	case errors.Is(err, sched.ErrElapsed) && !n.stopping && x.world.sched.now.Sub(began) < most:
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
	id := s.row.Result.Records[0].ID
	c := protocol.Command{Kind: protocol.Delete, Scope: s.row.Scope, Target: id}
	if x.keyed() {
		c.Key = "forget-" + x.name
	}
	got, err := n.engine.Delete(ctx, x.ws, c, func(ctx context.Context) ([]protocol.Record, error) {
		r, err := n.engine.Record(ctx, x.ws, s.row.Kind.Wire(), id)
		if errors.Is(err, protocol.ErrNotFound) {
			return nil, nil
		}
		return []protocol.Record{r}, err
	})
	if err != nil || !x.keyed() {
		return err
	}
	a := x.world.audit
	switch d := a.tasks[got.Task.ID]; {
	case d == nil || d.row.Kind != protocol.Delete:
		a.fail("I2", "%s was forgotten by task %q, which is no deletion", x, got.Task.ID)
	case x.deletion != "" && x.deletion != got.Task.ID:
		a.fail("I2", "%s was forgotten by task %s and before by %s", x, got.Task.ID, x.deletion)
	}
	x.deletion = got.Task.ID
	return nil
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
func (w *world) fulfil(p *process, x *wish) {
	for range 40 {
		if s := x.holder(); s != nil && s.row.State == protocol.Failed && s.row.Command == nil && x.keyed() {
			x.moot = true // nobody redrove it in time, and its key is used up
			return
		}
		if x.Number%2 == 0 {
			if p.insist(x) {
				return
			}
		} else if x.press(w.nodes[x.Number%len(w.nodes)]) {
			return
		}
		w.pass(3 * time.Second)
	}
	w.audit.fail("E6", "%s is not stored although nothing goes wrong any more", x)
}

// press sends a wish to a node and waits for its task.
func (x *wish) press(n *node) bool {
	w := x.world
	err := x.submit(w.ctx, n)
	if x.moot {
		return true
	}
	if err == nil {
		err = x.await(w.ctx, n, time.Hour)
	}
	state := protocol.Failed
	if err == nil {
		state = w.audit.tasks[x.task].row.State
	}
	if err == nil && state == protocol.Failed && x.Kind == WantInfer {
		_ = x.redrive(w.ctx, n)
	}
	return state == protocol.Succeeded
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
