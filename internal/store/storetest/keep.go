package storetest

import (
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// supersede carries a claimed task to its commit with one fact that takes the
// place of others.
func (b *bundle) supersede(t protocol.Task, text string, old ...string) protocol.Task {
	b.Helper()
	first, err := b.store.Allot(b.ctx, 1)
	b.must(err)
	t = b.apply(protocol.FreezePlan(t, []protocol.Fact{{Text: text, Type: "fact", Key: "self/x", Replaces: true}},
		[]protocol.Judgment{{Supersedes: old}}, first, b.now))
	return b.apply(protocol.Commit(t, b.now))
}

func supersededIsForgotten(b *bundle) {
	b.accept(add("one"))
	t, _ := b.claim("t1")
	t = b.succeed(t, "old", "older")
	old := t.Result.Records
	b.now = b.now.Add(time.Second)
	b.accept(add("two"))
	second, _ := b.claim("t2")
	// Forgotten after the plan was frozen: that record is passed over.
	r, err := b.store.Record(b.ctx, "w", old[1].ID)
	b.must(err)
	b.must(b.store.PutRecord(b.ctx, r.Forget(b.now)))
	second = b.supersede(second, "new", old[0].ID, old[1].ID, "none")

	gone, err := b.store.Record(b.ctx, "w", old[0].ID)
	b.must(err)
	if !gone.Forgotten || gone.Text != "" || gone.SupersededBy != second.Plan.Mutations[0].RecordID || !gone.UpdatedAt.Equal(b.now) || gone.Number != old[0].Number {
		b.Fatalf("%+v", gone)
	}
	if before, err := b.store.Record(b.ctx, "w", old[1].ID); err != nil || before.SupersededBy != "" {
		b.Fatalf("%+v, %v", before, err)
	}
	for name, list := range map[string]func() ([]protocol.Record, error){
		"listed": func() ([]protocol.Record, error) {
			return b.store.Records(b.ctx, protocol.RecordQuery{Workspace: "w", Wire: protocol.MemorySync, Scope: t.Scope, Now: b.now})
		},
		"compared": func() ([]protocol.Record, error) {
			return b.store.Similar(b.ctx, "w", protocol.MemorySync, t.Scope, "fact", "self/x", b.now)
		},
	} {
		rs, err := list()
		b.must(err)
		if len(rs) != 1 || rs[0].Text != "new" {
			b.Fatalf("%s: %+v", name, rs)
		}
	}
	b.apply(protocol.Finish(second, b.now))
}

// Steps that nothing lies between are written as one, from the plan to the end.
func stepsAreWrittenTogether(b *bundle) {
	c := add("r")
	b.tasks++
	a := protocol.Accept(protocol.Proposal{Workspace: workspace("w"), Command: &c, TaskID: taskID(b.tasks), MaxAttempts: 2, Now: b.now}).Claimed("runner", "t1", time.Minute)
	t, twin, err := b.store.Accept(b.ctx, a)
	b.must(err)
	if twin || t.State != protocol.Running || t.Attempts != 1 || t.Lease.Token != "t1" || t.Version != 1 {
		b.Fatalf("accepted as %+v", t)
	}
	if at, ok, err := b.store.NextDue(b.ctx); err != nil || !ok || !at.Equal(b.now.Add(time.Minute)) {
		b.Fatalf("due at %v", at)
	}
	first, err := b.store.Allot(b.ctx, 1)
	b.must(err)
	whole, err := protocol.FreezePlan(t, []protocol.Fact{{Text: "x", Type: "fact", Key: "self/x"}}, make([]protocol.Judgment, 1), first, b.now)
	b.must(err)
	for _, step := range []func(protocol.Task) (protocol.WriteSet, error){
		func(t protocol.Task) (protocol.WriteSet, error) { return protocol.Commit(t, b.now) },
		func(t protocol.Task) (protocol.WriteSet, error) { return protocol.Projected(t, b.now), nil },
		func(t protocol.Task) (protocol.WriteSet, error) { return protocol.Finish(t, b.now) },
	} {
		next, err := step(whole.Task)
		b.must(err)
		whole = whole.Then(next)
	}
	done := b.apply(whole, nil)
	if done.State != protocol.Succeeded || done.Version != 2 || done.Command != nil || done.Plan.Mutations[0].Fact != (protocol.Fact{}) {
		b.Fatalf("%+v", done)
	}
	r, err := b.store.RecordByNumber(b.ctx, "w", first)
	b.must(err)
	if !r.Projected || r.Text != "x" {
		b.Fatalf("%+v", r)
	}
	_, err = b.store.Apply(b.ctx, whole)
	b.wants(err, protocol.ErrStale)
	trs, err := b.store.Transitions(b.ctx, "w", 0, 0)
	b.must(err)
	bal, err := b.store.Balance(b.ctx, done.Account)
	b.must(err)
	if len(trs) != 3 || trs[1].To != protocol.Running || bal.Spent != 1 || bal.Reserved != 0 {
		b.Fatalf("%d transitions, %+v", len(trs), bal)
	}
}

// A call with many commands reserves once. The ones behind it are paid for by
// one that settled, and end without touching the ledger.
func onePaysForMany(b *bundle) {
	b.accept(add("one"))
	t, _ := b.claim("t1")
	payer := b.succeed(t, "x")
	propose := func(ref string) protocol.Task {
		b.Helper()
		b.tasks++
		c := add(ref)
		got, _, err := b.store.Accept(b.ctx, protocol.Accept(protocol.Proposal{Workspace: workspace("w"), Command: &c, TaskID: taskID(b.tasks), MaxAttempts: 2, Now: b.now, PaidBy: &payer}))
		b.must(err)
		return got
	}
	second := propose("two")
	if second.Amount != 0 || second.Reservation != payer.Reservation {
		b.Fatalf("%+v", second)
	}
	got, err := b.store.Task(b.ctx, second.ID)
	b.must(err)
	b.same(got, second)
	t, _ = b.claim("t2")
	b.succeed(t, "y")
	propose("three")
	t, _ = b.claim("t3")
	b.apply(protocol.Failing(t, protocol.Fail(protocol.Rejected, "no"), workspace("w"), 0, b.now), nil)
	bal, err := b.store.Balance(b.ctx, payer.Account)
	b.must(err)
	es, err := b.store.Entries(b.ctx, "w")
	b.must(err)
	if bal.Spent != 1 || bal.Reserved != 0 || bal.Available != 4 || len(es) != 3 {
		b.Fatalf("%+v after %d entries", bal, len(es))
	}
}

// What cannot be redriven keeps no input; what can keeps it for a time, and is
// due when that is over.
func failedKeepsItsCommandForATime(b *bundle) {
	b.accept(add("r"))
	t, _ := b.claim("t1")
	t = b.apply(protocol.Failing(t, protocol.Fail(protocol.Rejected, "no"), workspace("w"), 0, b.now), nil)
	if t.Command != nil {
		b.Fatal("a failed add keeps its input")
	}
	if at, ok, err := b.store.NextDue(b.ctx); err != nil || ok {
		b.Fatalf("due at %v, %v", at, err)
	}

	b.accept(infer("k"))
	t, _ = b.claim("t2")
	t = b.apply(protocol.FreezePlan(t, []protocol.Fact{{Text: "x"}}, make([]protocol.Judgment, 1), 0, b.now))
	t = b.apply(protocol.Failing(t, protocol.Fail(protocol.Rejected, "no"), workspace("w"), 0, b.now), nil)
	if t.Command == nil {
		b.Fatal("a failed write lost what a redrive needs")
	}
	at, ok, err := b.store.NextDue(b.ctx)
	b.must(err)
	if !ok || !at.Equal(b.now.Add(protocol.FailedRetention)) {
		b.Fatalf("due at %v", at)
	}
	b.now = at.Add(-time.Second)
	if _, ok := b.claim("early"); ok {
		b.Fatal("its input was taken too early")
	}
	b.now = at
	got, ok := b.claim("erase")
	if !ok || got.State != protocol.Failed || got.Command != nil || got.Plan.Mutations[0].Fact != (protocol.Fact{}) || got.Plan.Hash != t.Plan.Hash || got.Transitions != t.Transitions {
		b.Fatalf("%v, %+v", ok, got)
	}
	read, err := b.store.Task(b.ctx, t.ID)
	b.must(err)
	b.same(read, got)
	if _, ok := b.claim("again"); ok {
		b.Fatal("it is due for ever")
	}
	if _, _, err := protocol.Redrive(got, workspace("w"), b.now); err == nil {
		b.Fatal("redriven without a command")
	}
	// The key is what it was: the same command is its twin, another a conflict.
	if twin, is, err := b.store.Accept(b.ctx, b.proposal(infer("k"))); err != nil || !is || twin.ID != t.ID {
		b.Fatalf("twin %v, %v", is, err)
	}
}
