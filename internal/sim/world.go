package sim

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/internal/store/memory"
)

// world is one schedule on its way.
type world struct {
	script *Script
	sched  *scheduler
	store  protocol.Store
	audit  *audit
	nodes  []*node
	ctx    context.Context
	began  time.Time
	log    oplog

	faults [places][]*Fault
	passed [places]int
	tally  map[Kind]int
	points map[string]int

	wishes  []*wish
	busy    int           // clients that are not through with their operations
	calm    bool          // nothing goes wrong any more
	calmed  chan struct{} // closed then
	over    bool
	readers []*reader
	births  int
	outage  []outage
	worker  *Worker
	crashes int
	calls   int
	ops     int
}

// Result is what a schedule came to.
type Result struct {
	Script    *Script
	Violation *Violation // nil: every invariant held
	Steps     int
	Ops       int
	Crashes   int
	Faults    map[Kind]int
	Points    map[string]int
	Hash      uint64 // of the operation log
	Log       []entry
}

const mostSteps = 60_000

// Run lives through a script. With keep the operation log is there in words.
func (h *Worker) Run(s *Script, keep bool) (res *Result) {
	w := newWorld(h, s, keep)
	defer w.store.Close()
	h.door.Scheduler = w.sched
	defer func() {
		if v := recover(); v != nil {
			w.audit.fail("I0", "a panic: %v\n%s", v, debug.Stack())
			res = w.result()
		}
	}()
	w.open()
	if err := w.sched.run(mostSteps, func() bool {
		if h.wrong != nil {
			h.wrong(w)
		}
		return w.audit.found != nil
	}); err != nil && w.audit.found == nil {
		w.audit.fail("E6", "%v", err)
	}
	if w.audit.found == nil {
		w.final()
	}
	return w.result()
}

func (h *Worker) open(first int64) protocol.Store {
	if h.Open != nil {
		return h.Open(first)
	}
	return memory.New(first)
}

func newWorld(h *Worker, s *Script, keep bool) *world {
	w := &world{
		worker: h, script: s, store: h.open(1000), ctx: context.Background(), tally: map[Kind]int{}, points: map[string]int{},
		calmed: make(chan struct{}), began: time.Date(2026, 8, 30, 12, 0, 0, 0, time.UTC), nodes: make([]*node, s.World.Nodes),
	}
	w.log = oplog{hash: fnvStart, keep: keep}
	w.sched = newScheduler(&h.pool, rand.New(rand.NewPCG(s.Seed, 0x73636865647565)), w.began)
	w.sched.sticky, w.sched.late = s.World.Sticky, s.World.Late
	w.sched.trace = func(p *proc, why int) {
		w.log.mix(uint64(p.number)<<8 | uint64(why))
		if f := w.strike(atTime); f != nil {
			w.fired(f, "")
			w.sched.jump(f.Span)
		}
	}
	w.audit = newAudit(w)
	for i := range s.Faults {
		f := s.Faults[i]
		f.fired = false
		w.faults[f.At] = append(w.faults[f.At], &f)
	}
	for p := range w.faults {
		sortFaults(w.faults[p])
	}
	return w
}

func (w *world) result() *Result {
	return &Result{Script: w.script, Violation: w.audit.found, Steps: w.sched.steps, Ops: w.ops, Crashes: w.crashes,
		Faults: w.tally, Points: w.points, Hash: w.log.hash, Log: w.log.lines}
}

func workspaceID(i int) string { return fmt.Sprintf("ws%d", i+1) }

// open makes what a schedule begins with.
func (w *world) open() {
	shape := w.script.World
	for i := range shape.Workspaces {
		ws := protocol.Workspace{ID: workspaceID(i), Credits: shape.Credits, AddsPerMonth: shape.Adds, StrictQuota: shape.Strict,
			Extraction: protocol.ExtractionPolicy{InvalidOutputAttempts: shape.Invalid}}
		if err := w.store.PutWorkspace(w.ctx, ws); err != nil {
			panic(err)
		}
		r := &reader{world: w, workspace: ws.ID}
		w.readers = append(w.readers, r)
		w.sched.goAs("reader", r.read)
	}
	for i := range w.nodes {
		w.start(i)
	}
	for i := range w.script.Intents {
		w.wishes = append(w.wishes, w.newWish(i))
	}
	w.busy = shape.Clients
	for i := range shape.Clients {
		w.sched.goAs(fmt.Sprintf("client%d", i+1), func() { w.client(i) })
	}
	w.sched.goAs("chaos", w.watch)
}

// spend lets a little time pass, up to most.
func (w *world) spend(most time.Duration) {
	if most > 0 {
		w.pass(sched.Jitter(w.sched, most))
	} else if w.sched.rng.Uint64()&1 == 0 {
		w.sched.step()
	}
}

func (w *world) pass(d time.Duration) { _ = w.sched.park(w.ctx, d, nil) }

// sleep is how long something that went wrong lasts: it ends early once
// nothing may go wrong any more.
func (w *world) sleep(d time.Duration) { _ = w.sched.Wait(w.ctx, d, w.calmed) }

// through is called by each client that has made its operations. The last one
// ends the time of faults.
func (w *world) through() {
	if w.busy--; w.busy == 0 {
		w.calm = true
		w.note("calm", "", "", 0)
		close(w.calmed)
	}
}

// watch goes through the end of a schedule: the servers alone bring every task
// to its end; then the callers come back for what they have not got; then
// everything is closed.
func (w *world) watch() {
	_ = w.sched.Wait(w.ctx, sched.Forever, w.calmed)
	for w.allUp() != nil {
		w.pass(time.Second)
	}
	shape := w.script.World
	// Each attempt may need a lease to run out and repair to come by.
	most := time.Duration(shape.MaxAttempts+2) * (shape.Lease + 2*shape.Repair + 20*shape.BackOff)
	end := w.sched.now.Add(most + 4*shape.Lease)
	for w.left() != "" {
		if w.sched.now.After(end) {
			w.audit.fail("I9", "%s does not come to its end", w.left())
			return
		}
		w.pass(shape.Repair)
	}
	w.fund()
	done := make(chan struct{})
	left := len(w.wishes)
	p := w.newProcess("callers")
	for _, x := range w.wishes {
		w.sched.goAs("caller", func() {
			w.fulfil(p, x)
			if left--; left == 0 {
				close(done)
			}
		})
	}
	_ = w.sched.Wait(w.ctx, sched.Forever, done)
	for i := 0; w.left() != ""; i++ {
		if i > 100 {
			w.audit.fail("I9", "%s does not come to its end", w.left())
			return
		}
		w.pass(shape.Repair)
	}
	w.over = true
	for _, n := range w.nodes {
		n.end()
		n.dead = true
	}
}

// left is a task that has not ended, or "".
func (w *world) left() string {
	for _, id := range w.audit.order {
		t := &w.audit.tasks[id].row
		if !t.State.Terminal() {
			return fmt.Sprintf("task %s, which is %s,", id, t.State)
		}
		if t.Projection == protocol.ProjectionPending {
			return fmt.Sprintf("the projection of task %s", id)
		}
	}
	return ""
}

// fund gives every workspace enough for all it wants.
func (w *world) fund() {
	for i := range w.script.World.Workspaces {
		for _, unit := range []protocol.Unit{protocol.Credits, protocol.Adds} {
			w.grant(i, unit, 200)
		}
	}
}

// allUp gives a node that is not.
func (w *world) allUp() *node {
	for _, n := range w.nodes {
		if n.dead || n.stopping {
			return n
		}
	}
	return nil
}

// grant changes what a workspace has. The operator tries until it is done,
// unless there is less than is to be taken.
func (w *world) grant(workspace int, unit protocol.Unit, amount int64) {
	for range 100 {
		err := errDown
		if n := w.alive(0); n != nil {
			err = n.engine.Grant(w.ctx, workspaceID(workspace), unit, amount)
		}
		w.note("grant", string(unit), workspaceID(workspace), amount)
		if err == nil || amount < 0 {
			return
		}
		w.pass(time.Second)
	}
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
