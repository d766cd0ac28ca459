package sim

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/memwrite/memwrite-go/internal/backend"
	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
)

// node is one life of one server: a node that crashed comes back as another.
type node struct {
	world *world
	index int
	name  string
	dead  bool
	// stopping: callers are sent elsewhere, what runs goes on.
	stopping bool
	engine   *engine.Engine
	backend  *backend.Backend
	slow     time.Duration // the next extraction takes so long
	calls    map[int]context.CancelCauseFunc
	listen   []func(string)
}

// start brings a node up.
func (w *world) start(index int) {
	w.births++
	n := &node{world: w, index: index, name: "node" + strconv.Itoa(index+1) + "#" + strconv.Itoa(w.births), calls: map[int]context.CancelCauseFunc{}}
	shape := w.script.World
	n.engine = engine.New(engine.Config{
		Store: &nodeStore{n: n, Store: w.store}, Scheduler: owned{w.sched, n.name}, Extractor: n, Comparer: compare{}, Projector: n, Wakeups: n, Faults: n,
		Limits: engine.Limits{Runners: shape.Runners, MaxAttempts: shape.MaxAttempts, Lease: shape.Lease,
			BackOff: protocol.BackOff{Base: shape.BackOff, Cap: 20 * shape.BackOff}, RepairEvery: shape.Repair, InferenceTimeout: 2 * shape.Lease},
		OnError: func(err error) { w.stopped(err) },
	})
	n.backend = backend.New(n.engine, w.sched)
	w.nodes[index] = n
	n.engine.Start()
	w.note("node", n.name, "up", 0)
}

// crash ends a node on the spot: it reaches neither store nor callers any more.
// What it leaves running is over soon after, and it comes back.
func (n *node) crash(away time.Duration) {
	if n.dead {
		return
	}
	n.dead = true
	w := n.world
	w.crashes++
	w.note("node", n.name, "down", 0)
	for _, id := range sortedKeys(n.calls) {
		n.calls[id](errDown)
	}
	w.sched.goAs("chaos", func() {
		n.end()
		w.sleep(away)
		w.start(n.index)
	})
}

// stop ends a node in good order, as a rolling deploy does: it takes no new
// callers, lets what runs come to its end for a while, and gives back the rest.
func (n *node) stop(away time.Duration) {
	if n.dead || n.stopping {
		return
	}
	n.stopping = true
	w := n.world
	w.note("node", n.name, "stopping", 0)
	w.sched.goAs("chaos", func() {
		ctx, cancel := w.sched.WithTimeout(w.ctx, away/2, nil)
		defer cancel()
		n.engine.Drain(ctx)
		if n.dead { // it crashed meanwhile
			return
		}
		n.end()
		if n.dead {
			return
		}
		n.dead = true
		w.note("node", n.name, "stopped", 0)
		w.sleep(away / 8)
		w.start(n.index)
	})
}

// end closes the engine and sees that nothing of it is left (I12).
func (n *node) end() {
	w := n.world
	closed := make(chan struct{})
	w.sched.goAs("closer", func() { n.engine.Close(); close(closed) })
	// Many short waits: a jump of the clock ends one, and nobody else goes on
	// in it.
	for i := 0; w.sched.Wait(w.ctx, 6*time.Second, closed) != nil; i++ {
		if i == 100 {
			w.audit.fail("I12", "%s is not closed after ten minutes", n.name)
			return
		}
	}
	_ = sched.Sleep(w.ctx, w.sched, time.Second)
	for _, p := range w.sched.procs {
		if p.owner == n.name {
			w.audit.fail("I12", "a runnable of %s is left after it was closed", n.name)
		}
	}
}

// Announce tells every node that lives, this one first.
func (n *node) Announce(id string) {
	if n.dead {
		return
	}
	for i := range n.world.nodes {
		other := n.world.nodes[(n.index+i)%len(n.world.nodes)]
		if other.dead {
			continue
		}
		for _, f := range other.listen {
			f(id)
		}
	}
}

// Listen takes the engine's ear.
func (n *node) Listen(f func(string)) func() {
	n.listen = append(n.listen, f)
	return func() { n.listen = nil }
}

// Extract reads the facts that an intent's text is made of.
func (n *node) Extract(ctx context.Context, in protocol.Input) ([]protocol.Fact, error) {
	w := n.world
	w.sched.running.owner = "extractor"
	if d := n.slow; d > 0 {
		if n.slow = 0; d%2 == 0 {
			w.sleep(d) // one that ignores its context
		} else if err := sched.Sleep(ctx, w.sched, d); err != nil {
			return nil, err
		}
	}
	texts := []string{in.Text}
	if len(in.Messages) > 0 {
		texts = texts[:0]
		for _, m := range in.Messages {
			texts = append(texts, m.Content)
		}
	}
	var out []protocol.Fact
	for _, text := range texts {
		out = append(out, factsOf(text)...)
	}
	w.note("infer", in.Text, "", int64(len(out)))
	return out, nil
}

// Project makes records findable.
func (n *node) Project(context.Context, []protocol.Record) error { return nil }

// compare finds equal facts by their words.
type compare struct{}

func (compare) Same(a, b string) bool { return a == b }

func (compare) Score(query, text string) float64 {
	if strings.Contains(text, query) {
		return 1
	}
	return 0
}

// textOf is what an intent says, and factsOf what an extractor finds in it:
// "Note 12 holds 2 things" holds "thing 12.1" and "thing 12.2".
func textOf(in Intent) string {
	s := fmt.Sprintf("Note %d holds %d things", in.Number, in.Facts)
	if in.Twice {
		s += " told twice"
	}
	if in.Shared > 0 {
		s += fmt.Sprintf(" and shares %d", in.Shared)
	}
	return s
}

func factsOf(text string) []protocol.Fact {
	var number, facts, shared int
	if _, err := fmt.Sscanf(text, "Note %d holds %d things", &number, &facts); err != nil {
		return nil
	}
	if _, rest, ok := strings.Cut(text, "and shares "); ok {
		shared, _ = strconv.Atoi(rest)
	}
	times := 1
	if strings.Contains(text, "told twice") {
		times = 2
	}
	var out []protocol.Fact
	for range times {
		for i := range facts {
			out = append(out, protocol.Fact{Text: fmt.Sprintf("thing %d.%d", number, i+1), Type: "fact", Key: "things"})
		}
	}
	if shared > 0 {
		out = append(out, protocol.Fact{Text: fmt.Sprintf("shared %d", shared), Type: "fact", Key: "shared"})
		// An end user has one state; the newest takes the place of the others.
		out = append(out, protocol.Fact{Text: fmt.Sprintf("state %d", number), Type: "fact", Key: "state", Replaces: true})
	}
	return out
}
