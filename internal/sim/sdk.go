package sim

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/internal/protocol"
)

// process is one life of a caller: its SDK clients, one a workspace. A caller
// that crashed comes back as another.
type process struct {
	w       *world
	name    string
	clients map[string]*memwrite.Client
}

func (w *world) newProcess(name string) *process {
	return &process{w: w, name: name, clients: map[string]*memwrite.Client{}}
}

func (p *process) sdk(ws string) *memwrite.Client {
	if c := p.clients[ws]; c != nil {
		return c
	}
	t := &wire{w: p.w, client: p.name, mute: map[string]time.Time{}}
	c, err := memwrite.New(
		memwrite.WithMemorySync("http://sim.test", memorySyncKey(ws)), memwrite.WithFishMem("http://sim.test", fishMemKey(ws)),
		memwrite.WithHTTPClient(&http.Client{Transport: t}), memwrite.WithScheduler(p.w.sched), memwrite.WithTenant(ws),
		memwrite.WithObserver(memwrite.ObserverFunc(p.observe)))
	if err != nil {
		panic(err)
	}
	p.clients[ws] = c
	return c
}

// mostWait is above every wait a client may make: the longest a server may ask
// for and what it adds, so that clients do not come back as one.
const mostWait = maxServerWait + maxServerWait/2

func (p *process) observe(o memwrite.Observation) {
	if o.Wait < 0 || o.Wait > mostWait {
		p.w.audit.fail("E5", "%s of %s waits %v before try %d", o.Op, p.name, o.Wait, o.Try)
	}
}

// through makes an operation on the wire.
func (p *process) through(ctx context.Context, op *Op, x *wish) error {
	c := p.sdk(x.ws)
	var err error
	switch op.Verb {
	case Send:
		err = p.send(ctx, c, x, op.Draw%3 == 0)
	case Await:
		if x.task == "" || x.Kind != WantInfer {
			return nil
		}
		ctx, cancel := p.w.sched.WithTimeout(ctx, time.Duration(op.Draw%uint64(40*time.Second)), nil)
		defer cancel()
		var ev *memwrite.Event
		if ev, err = c.WaitForEvent(ctx, x.task); err == nil {
			x.succeeded(ev)
		}
	case Redrive:
		if x.task == "" || x.Kind != WantInfer {
			return nil
		}
		var ev *memwrite.Event
		if ev, err = c.Redrive(ctx, x.task); err == nil {
			x.told(ev.ID)
		}
	case Look:
		for _, e := range c.Events(ctx, memwrite.EventFilter{Page: 5}) {
			if err = e; err != nil {
				break
			}
		}
	case Forget:
		if id := x.number(); id != 0 {
			_, err = c.Forget(ctx, memwrite.ForgetRequest{EndUserID: x.user(), MemoryIDs: []int64{id}})
		}
	}
	return p.judged(err, x)
}

// send sends a wish through the client, which tries it several times.
func (p *process) send(ctx context.Context, c *memwrite.Client, x *wish, wait bool) error {
	infer := memwrite.InferRequest{Key: memwrite.RefFromString(x.name), Scope: memwrite.Scope{UserID: x.user()}, Content: x.text}
	switch x.Kind {
	case WantAdd:
		got, err := c.Add(ctx, memwrite.AddRequest{Text: x.text, EndUserID: x.user(), Ref: memwrite.RefFromString(x.name)})
		if err == nil {
			x.added(got)
		}
		return err
	case WantTurn:
		_, err := c.AddTurn(ctx, memwrite.TurnRequest{UserID: x.user(), Text: x.text, Speaker: x.name, OccurredAt: x.at})
		if err == nil {
			x.taken()
		}
		return err
	case WantVerbatim:
		got, err := c.AddVerbatim(ctx, infer)
		if err == nil {
			x.kept(got)
		}
		return err
	}
	if !wait {
		got, err := c.AddAsync(ctx, infer)
		if err == nil {
			x.told(got.EventID)
		}
		return err
	}
	ctx, cancel := p.w.sched.WithTimeout(ctx, time.Minute, nil)
	defer cancel()
	ev, err := c.AddAndWait(ctx, infer)
	if err == nil {
		x.told(ev.ID)
		x.succeeded(ev)
	}
	return err
}

// judged holds an error against what its caller may be told.
func (p *process) judged(err error, x *wish) error {
	var e *memwrite.Error
	if !errors.As(err, &e) {
		return err
	}
	a := p.w.audit
	if e.RetryAfter < 0 || e.RetryAfter > 24*time.Hour {
		a.fail("E5", "%s asks its caller to wait %v", e.Op, e.RetryAfter)
	}
	switch e.Kind {
	case memwrite.KindConflict:
		x.conflicted()
	case memwrite.KindInvalidInput, memwrite.KindUnauthorized, memwrite.KindForbidden, memwrite.KindTooLarge, memwrite.KindRedirect, memwrite.KindUnsupported:
		a.fail("E6", "%s ends with %v", x, err)
	case memwrite.KindNotFound:
		if e.Op == "WaitForEvent" || e.Op == "AddAndWait" {
			a.fail("E1", "%s was accepted as %s and its event is not found", x, x.task)
		}
	}
	if e.Receipt != nil && e.Receipt.EventID != "" && e.Op != "WaitForEvent" {
		x.told(e.Receipt.EventID)
	}
	return err
}

// holder is the task that has the wish's name.
func (x *wish) holder() *shadow {
	a := x.world.audit
	return a.tasks[a.identities[x.identity().Hash]]
}

// added is the answer to an add: what it names is what its reference stored.
func (x *wish) added(got *memwrite.AddResult) {
	a, s := x.world.audit, x.holder()
	if s == nil || s.row.State != protocol.Succeeded {
		a.fail("E1", "%s was told %s, and its reference stored nothing", x, got.Outcome)
		return
	}
	x.task, x.done = s.row.ID, true
	ids := map[int64]bool{}
	for _, e := range s.row.Result.Records {
		ids[e.Number] = true
	}
	for _, id := range got.MemoryIDs {
		if !ids[id] {
			a.fail("E1", "%s was told of memory %d, which its reference has not stored", x, id)
		}
	}
	if got.Outcome != memwrite.AlreadyIngested && (len(got.MemoryIDs) > 0) != (len(ids) > 0) {
		a.fail("E1", "%s was told %s, and its reference stored %d memories", x, got.Outcome, len(ids))
	}
}

// taken is the receipt of a turn: there is, or was, a task of it.
func (x *wish) taken() {
	a, id := x.world.audit, x.identity().Hash
	for _, t := range a.order {
		if a.tasks[t].row.Identity.Hash == id {
			if s := x.holder(); s != nil {
				x.task = s.row.ID
			}
			return
		}
	}
	a.fail("E1", "%s has a receipt and no task", x)
}

// kept is the answer to a verbatim write.
func (x *wish) kept(got *memwrite.VerbatimResult) {
	a, s := x.world.audit, x.holder()
	if s == nil || !x.mine(&s.command) {
		a.fail("E1", "%s was told that it is stored, and its key stored something else", x)
		return
	}
	x.told(s.row.ID)
	x.done = true
	for _, r := range got.Records {
		kept, err := x.world.store.Record(x.world.ctx, x.ws, r.ID)
		if err != nil || kept.TaskID != s.row.ID {
			a.fail("E1", "%s was told of record %s, which it has not stored", x, r.ID)
		}
	}
}

// succeeded is an event that ended well.
func (x *wish) succeeded(ev *memwrite.Event) {
	s := x.world.audit.tasks[ev.ID]
	if s == nil || s.row.State != protocol.Succeeded || len(s.row.Result.Records) != len(ev.Results) {
		x.world.audit.fail("E1", "event %s of %s SUCCEEDED with %d results, and its task did not", ev.ID, x, len(ev.Results))
		return
	}
	x.done = true
}

// number is a memory that the wish stored on the wire of numbers, or 0.
func (x *wish) number() int64 {
	s := x.world.audit.tasks[x.task]
	if s == nil || s.row.Result == nil {
		return 0
	}
	for _, e := range s.row.Result.Records {
		if e.Number != 0 && !e.Existing {
			return e.Number
		}
	}
	return 0
}

// insist sends a wish through the client until it is stored, doing what the
// client's verdicts say.
func (p *process) insist(x *wish) bool {
	w := p.w
	c := p.sdk(x.ws)
	err := p.judged(p.send(w.ctx, c, x, true), x)
	if x.moot {
		return true
	}
	switch v := memwrite.VerdictOf(err); v.Action {
	case memwrite.Ack:
		s := x.holder()
		return s != nil && s.row.State == protocol.Succeeded
	case memwrite.RedriveEvent, memwrite.DeadLetter: // an operator takes the second for the first
		_, err = c.Redrive(w.ctx, x.task)
		_ = p.judged(err, x)
	case memwrite.RetryAfter:
		w.pass(v.After + time.Second)
	}
	return false
}
