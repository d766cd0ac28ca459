package storetest

import (
	"errors"
	"sync"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

func acceptIsOneTransaction(b *bundle) {
	t := b.accept(infer("k"))
	got, err := b.store.Task(b.ctx, t.ID)
	b.must(err)
	b.same(got, t)
	if got.Version != 1 || got.State != protocol.Pending {
		b.Fatalf("%+v", got)
	}
	byKey, err := b.store.TaskByIdentity(b.ctx, protocol.CommandKey("w", "k"))
	b.must(err)
	b.same(byKey, t)
	bal, err := b.store.Balance(b.ctx, t.Account)
	b.must(err)
	if bal.Reserved != 2 || bal.Available != 8 || bal.Granted != 10 {
		b.Fatalf("%+v", bal)
	}
	trs, err := b.store.Transitions(b.ctx, "w", 0, 0)
	b.must(err)
	if len(trs) != 1 || trs[0].To != protocol.Pending || trs[0].Position == 0 {
		b.Fatalf("%+v", trs)
	}
	at, ok, err := b.store.NextDue(b.ctx)
	b.must(err)
	if !ok || !at.Equal(b.now) {
		b.Fatalf("due at %v", at)
	}
}

func twinGetsWhatTheFirstWrote(b *bundle) {
	first := b.accept(infer("k"))
	for range 2 { // before and after its end
		got, twin, err := b.store.Accept(b.ctx, b.proposal(infer("k")))
		b.must(err)
		if !twin {
			b.Fatal("accepted twice")
		}
		b.same(got, first)
		if first.State == protocol.Pending {
			t, _ := b.claim("t1")
			first = b.succeed(t, "x")
		}
	}
	bal, _ := b.store.Balance(b.ctx, first.Account)
	if bal.Spent != 2 || bal.Reserved != 0 {
		b.Fatalf("a twin was charged: %+v", bal)
	}
}

func windowEnds(b *bundle) {
	turn := protocol.Command{Kind: protocol.Turn, Scope: protocol.Scope{Tenant: "default", EndUser: "sam"}, Text: "a turn of a conversation"}
	first := b.accept(turn)
	b.now = b.now.Add(protocol.TurnWindow - time.Nanosecond)
	if _, twin, err := b.store.Accept(b.ctx, b.proposal(turn)); err != nil || !twin {
		b.Fatalf("inside the window: twin %v, %v", twin, err)
	}
	b.now = b.now.Add(time.Nanosecond)
	second := b.accept(turn)
	got, err := b.store.TaskByIdentity(b.ctx, first.Identity.Hash)
	b.must(err)
	b.same(got, second)
}

// A turn that outlives its window loses its identity to the next one of its
// words. When it fails in the end, it frees nothing.
func lateFailureFreesNoOther(b *bundle) {
	turn := protocol.Command{Kind: protocol.Turn, Scope: protocol.Scope{Tenant: "default", EndUser: "sam"}, Text: "a turn of a conversation"}
	b.accept(turn)
	first, _ := b.claim("t1")
	b.now = b.now.Add(protocol.TurnWindow)
	second := b.accept(turn)
	b.apply(protocol.Failing(first, protocol.Fail(protocol.Rejected, "no"), workspace("w"), 0, b.now), nil)
	got, err := b.store.TaskByIdentity(b.ctx, second.Identity.Hash)
	b.must(err)
	b.same(got, second)
	if _, twin, err := b.store.Accept(b.ctx, b.proposal(turn)); err != nil || !twin {
		b.Fatalf("accepted beside a live one: %v, %v", twin, err)
	}
}

func shortAccountKeepsNothing(b *bundle) {
	for _, k := range []string{"a", "b", "c", "d", "e"} {
		b.accept(infer(k))
	}
	before, err := b.store.Snapshot(b.ctx)
	b.must(err)
	_, _, err = b.store.Accept(b.ctx, b.proposal(infer("f")))
	var short *protocol.InsufficientError
	if !errors.As(err, &short) || short.Account.Unit != protocol.Credits || short.Needed != 2 {
		b.Fatalf("got %v", err)
	}
	after, err := b.store.Snapshot(b.ctx)
	b.must(err)
	if len(after.Tasks) != len(before.Tasks) || len(after.Entries) != len(before.Entries) || len(after.Transitions) != len(before.Transitions) {
		b.Fatal("a refused command left something behind")
	}
	_, err = b.store.TaskByIdentity(b.ctx, protocol.CommandKey("w", "f"))
	b.wants(err, protocol.ErrNotFound)

	a := protocol.AccountAt("w", protocol.Credits, b.now)
	b.must(b.store.Post(b.ctx, protocol.Opening(workspace("w"), a, b.now), protocol.Entry{ID: "g1", Account: a, Kind: protocol.Grant, Amount: 2, At: b.now}))
	b.accept(infer("f"))
	b.wants(b.store.Post(b.ctx, protocol.Entry{ID: "g2", Account: a, Kind: protocol.Grant, Amount: -1, At: b.now}), protocol.ErrInsufficient)
}

func concurrentTwinsAreOneTask(b *bundle) {
	const n = 16
	proposals := make([]protocol.Acceptance, n)
	for i := range proposals {
		proposals[i] = b.proposal(infer("k"))
	}
	var wg sync.WaitGroup
	ids, first := make([]string, n), make([]bool, n)
	for i := range n {
		wg.Go(func() {
			t, twin, err := b.store.Accept(b.ctx, proposals[i])
			if err != nil {
				b.Error(err)
			}
			ids[i], first[i] = t.ID, !twin
		})
	}
	wg.Wait()
	firsts := 0
	for i := range n {
		if ids[i] != ids[0] {
			b.Fatal("two tasks under one key")
		}
		if first[i] {
			firsts++
		}
	}
	if firsts != 1 {
		b.Fatalf("%d callers were the first", firsts)
	}
}

func workspacesDoNotMeet(b *bundle) {
	b.must(b.store.PutWorkspace(b.ctx, workspace("v")))
	mine := b.accept(infer("k"))
	c := infer("k")
	theirs, twin, err := b.store.Accept(b.ctx, protocol.Accept(protocol.Proposal{Workspace: workspace("v"), Command: &c, TaskID: "task_v", MaxAttempts: 2, Now: b.now}))
	b.must(err)
	if twin || theirs.ID == mine.ID {
		b.Fatal("one key in two workspaces is one task")
	}
	ts, err := b.store.Tasks(b.ctx, protocol.TaskQuery{Workspace: "v"})
	b.must(err)
	if len(ts) != 1 || ts[0].ID != "task_v" {
		b.Fatalf("%d tasks", len(ts))
	}
	t, _ := b.claim("t1")
	for t.Workspace != "w" {
		t, _ = b.claim("t1")
	}
	t = b.succeed(t, "x")
	_, err = b.store.Record(b.ctx, "v", t.Result.Records[0].ID)
	b.wants(err, protocol.ErrNotFound)
	rs, err := b.store.Records(b.ctx, protocol.RecordQuery{Workspace: "v", Wire: protocol.FishMem, Scope: protocol.Scope{UserID: "sam"}, Now: b.now})
	b.must(err)
	if len(rs) != 0 {
		b.Fatal("another workspace's record is listed")
	}
	_, err = b.store.Workspace(b.ctx, "u")
	b.wants(err, protocol.ErrNotFound)
	c = add("r")
	_, _, err = b.store.Accept(b.ctx, protocol.Accept(protocol.Proposal{Workspace: workspace("u"), Command: &c, TaskID: "task_u", MaxAttempts: 2, Now: b.now}))
	b.wants(err, protocol.ErrNotFound)
}
