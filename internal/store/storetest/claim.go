package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// many is more than one page of whatever a store reads at a time.
const many = 300

// acceptMany makes commands that are all created, and due, at one moment.
func (b *bundle) acceptMany(n int) []string {
	b.Helper()
	w := workspace("w")
	w.Credits = -1
	b.must(b.store.PutWorkspace(b.ctx, w))
	ids := make([]string, n)
	for i := range ids {
		b.tasks++
		c := infer(fmt.Sprint("many", i))
		t, _, err := b.store.Accept(b.ctx, protocol.Accept(protocol.Proposal{Workspace: w, Command: &c, TaskID: taskID(b.tasks), MaxAttempts: 2, Now: b.now}))
		b.must(err)
		ids[i] = t.ID
	}
	return ids
}

func (b *bundle) claimSome(limit int, pick func(protocol.Task) bool) []protocol.Task {
	b.Helper()
	ts, err := b.store.Claim(b.ctx, b.now, limit, func(t protocol.Task) (protocol.WriteSet, bool) {
		ws, _, write := protocol.Claim(t, "runner", "t1", time.Minute, b.now)
		return ws, write && pick(t)
	})
	b.must(err)
	return ts
}

func claimPagesPastManyThatItSkips(b *bundle) {
	ids := b.acceptMany(many)
	b.now = b.now.Add(time.Second)
	last := ids[len(ids)-1]
	if got := b.claimSome(5, func(t protocol.Task) bool { return t.ID == last }); len(got) != 1 || got[0].ID != last {
		b.Fatalf("claimed %d behind %d that were skipped", len(got), many-1)
	}
	if got := b.claimSome(many, func(protocol.Task) bool { return true }); len(got) != many-1 {
		b.Fatalf("claimed %d of those skipped before, want %d", len(got), many-1)
	}
}

// A row that no write fits must not hold up those that are due behind it.
func claimPassesOverABrokenWrite(b *bundle) {
	poisoned := b.accept(infer("poisoned"))
	b.now = b.now.Add(time.Second)
	well := b.accept(infer("well"))
	for range 2 {
		ts, err := b.store.Claim(b.ctx, b.now, 1, func(t protocol.Task) (protocol.WriteSet, bool) {
			ws, _, write := protocol.Claim(t, "runner", "t1", time.Minute, b.now)
			if t.ID == poisoned.ID {
				ws.Task.Lease = protocol.Lease{} // RUNNING without a lease is no state
			}
			return ws, write
		})
		if !errors.Is(err, protocol.ErrInvariant) {
			b.Fatalf("a write that was stopped was kept quiet: %v", err)
		}
		if well.ID != "" && (len(ts) != 1 || ts[0].ID != well.ID || ts[0].State != protocol.Running) {
			b.Fatalf("claimed %+v, want the task behind it", ts)
		}
		well.ID = "" // it is claimed now, and the other is still due
	}
	got, err := b.store.Task(b.ctx, poisoned.ID)
	b.must(err)
	b.same(got, poisoned)
	trs, err := b.store.Transitions(b.ctx, "w", 0, 0)
	b.must(err)
	if len(trs) != 3 {
		b.Fatalf("%d transitions: half of a stopped write was kept", len(trs))
	}
}

// Many tasks of one due time, some at a time: each is claimed once.
func claimTakesEachOfManyOnce(b *bundle) {
	b.acceptMany(many)
	seen := map[string]bool{}
	for len(seen) < many {
		got := b.claimSome(7, func(protocol.Task) bool { return true })
		if len(got) == 0 || (len(got) < 7 && len(seen)+len(got) < many) {
			b.Fatalf("a look gave %d, with %d of %d claimed", len(got), len(seen), many)
		}
		for _, t := range got {
			if seen[t.ID] {
				b.Fatalf("%s was claimed twice", t.ID)
			}
			seen[t.ID] = true
		}
	}
	if _, ok := b.claim("none"); ok {
		b.Fatal("one more than there are")
	}
}

// A few tasks of a state among many others are listed in pages of any size.
func rareTasksAreFound(b *bundle) {
	b.acceptMany(many)
	b.claimSome(many, func(protocol.Task) bool { return true })
	var want []string
	for i := range 3 { // between the others and of their moment
		b.accept(add(fmt.Sprint("other kind", i)))
		want = append([]string{b.accept(infer(fmt.Sprint("rare", i))).ID}, want...)
	}
	q := protocol.TaskQuery{Workspace: "w", Kinds: []protocol.Kind{protocol.Infer}, State: protocol.Pending}
	for _, limit := range []int{0, 1, 2, 3, 4} {
		var got []string
		q.Limit, q.After = limit, nil
		for {
			ts, err := b.store.Tasks(b.ctx, q)
			b.must(err)
			for _, t := range ts {
				got = append(got, t.ID)
				q.After = &protocol.Place{Created: t.CreatedAt, ID: t.ID}
			}
			if len(ts) == 0 || limit == 0 {
				break
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			b.Fatalf("in pages of %d: %v, want %v", limit, got, want)
		}
	}
	all, err := b.store.Tasks(b.ctx, protocol.TaskQuery{Workspace: "w"})
	b.must(err)
	if len(all) != many+6 {
		b.Fatalf("%d tasks", len(all))
	}
	for i := 1; i < len(all); i++ {
		if p, q := all[i-1], all[i]; !(protocol.Place{Created: p.CreatedAt, ID: p.ID}).Before(protocol.Place{Created: q.CreatedAt, ID: q.ID}) {
			b.Fatalf("%s is listed before %s", p.ID, q.ID)
		}
	}
}

// A look that ends a task whose projection waits then leaves that to the next.
func claimWritesARowOnceALook(b *bundle) {
	b.accept(infer("k"))
	for range 2 { // attempts of the task, of which the second is its last
		t, _ := b.claim(fmt.Sprint("t", b.now.Unix()))
		if t.Attempts == 1 {
			t = b.apply(protocol.FreezePlan(t, []protocol.Fact{{Text: "x", Type: "fact"}}, make([]protocol.Judgment, 1), 0, b.now))
			b.apply(protocol.Commit(t, b.now))
		}
		b.now = b.now.Add(time.Minute)
	}
	other := b.accept(infer("other"))
	b.now = b.now.Add(time.Second) // what is ended now is due again behind the other
	for _, want := range []int{2, 1} {
		if got := b.claimSome(many, func(protocol.Task) bool { return true }); len(got) != want {
			b.Fatalf("a look wrote %d rows, want %d: %+v", len(got), want, got)
		}
	}
	if got, err := b.store.Task(b.ctx, other.ID); err != nil || got.Version != 2 {
		b.Fatalf("%+v, %v", got, err)
	}
}
