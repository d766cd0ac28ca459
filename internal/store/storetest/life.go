package storetest

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

func claimIsOnce(b *bundle) {
	b.accept(infer("k"))
	var won atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			ts, err := b.store.Claim(b.ctx, b.now, 1, func(t protocol.Task) (protocol.WriteSet, bool) {
				ws, _, write := protocol.Claim(t, "runner", taskID(i), time.Minute, b.now)
				return ws, write
			})
			if err != nil {
				b.Error(err)
			}
			won.Add(int64(len(ts)))
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		b.Fatalf("%d runners hold the lease", won.Load())
	}
	if _, ok := b.claim("late"); ok {
		b.Fatal("a live lease was taken")
	}
	b.now = b.now.Add(time.Minute)
	t, ok := b.claim("next")
	if !ok || t.Attempts != 2 || t.Lease.Token != "next" {
		b.Fatalf("an expired lease: %v, %+v", ok, t)
	}
	b.now = b.now.Add(time.Minute)
	t, ok = b.claim("last")
	if !ok || t.State != protocol.Failed || t.Attempts != 2 {
		b.Fatalf("at the limit: %+v", t)
	}
	if bal, _ := b.store.Balance(b.ctx, t.Account); bal.Available != 10 {
		b.Fatalf("%+v", bal)
	}
}

func claimPagesPastWhatItSkips(b *bundle) {
	first := b.accept(infer("a"))
	b.now = b.now.Add(time.Second)
	second := b.accept(infer("b"))
	ts, err := b.store.Claim(b.ctx, b.now, 1, func(t protocol.Task) (protocol.WriteSet, bool) {
		if t.ID == first.ID {
			return protocol.WriteSet{}, false
		}
		ws, _, write := protocol.Claim(t, "runner", "t1", time.Minute, b.now)
		return ws, write
	})
	b.must(err)
	if len(ts) != 1 || ts[0].ID != second.ID {
		b.Fatalf("%+v", ts)
	}
	if t, ok := b.claim("t2"); !ok || t.ID != first.ID {
		b.Fatal("the skipped task is lost")
	}
}

func writeNeedsItsCondition(b *bundle) {
	b.accept(infer("k"))
	old, _ := b.claim("t1")
	b.now = b.now.Add(time.Minute)
	held, _ := b.claim("t2")
	for name, ws := range map[string]protocol.WriteSet{
		"extend": protocol.Extend(old, time.Minute, b.now),
		"fail":   protocol.Failing(old, protocol.Fail(protocol.Rejected, "late"), workspace("w"), 0, b.now),
	} {
		if _, err := b.store.Apply(b.ctx, ws); err == nil {
			b.Fatalf("%s without the lease was written", name)
		} else {
			b.wants(err, protocol.ErrStale)
		}
	}
	got, err := b.store.Task(b.ctx, old.ID)
	b.must(err)
	b.same(got, held)

	seen := b.succeed(held, "x")
	stale := protocol.WriteSet{If: protocol.Condition{State: protocol.Succeeded, Version: seen.Version - 1}, Task: seen}
	_, err = b.store.Apply(b.ctx, stale)
	b.wants(err, protocol.ErrStale)
	gone := stale
	gone.Task.ID = "task_none"
	_, err = b.store.Apply(b.ctx, gone)
	b.wants(err, protocol.ErrNotFound)
}

func brokenRowIsStopped(b *bundle) {
	b.accept(infer("k"))
	t, _ := b.claim("t1")
	bad := t
	bad.Lease = protocol.Lease{}
	_, err := b.store.Apply(b.ctx, protocol.WriteSet{If: protocol.Condition{State: protocol.Running, Token: "t1"}, Task: bad})
	b.wants(err, protocol.ErrInvariant)
	t = b.succeed(t, "x")
	_, _, err = b.store.Accept(b.ctx, func() protocol.Acceptance {
		a := b.proposal(infer("k2"))
		a.Task.ID = t.ID
		return a
	}())
	b.wants(err, protocol.ErrInvariant)
	back := t
	back.State = protocol.Pending
	_, err = b.store.Apply(b.ctx, protocol.WriteSet{If: protocol.Condition{State: protocol.Succeeded}, Task: back})
	b.wants(err, protocol.ErrInvariant)
	got, err := b.store.Task(b.ctx, t.ID)
	b.must(err)
	b.same(got, t)
}

func wholeLife(b *bundle) {
	b.accept(add("r"))
	t, _ := b.claim("t1")
	t = b.apply(protocol.Failing(t, protocol.Fail(protocol.ProviderTimeout, "slow"), workspace("w"), time.Second, b.now), nil)
	if _, ok := b.claim("early"); ok || t.State != protocol.Retrying {
		b.Fatal("claimed before its time")
	}
	b.now = b.now.Add(time.Second)
	t, _ = b.claim("t2")
	texts := []string{"one", "two"}
	t = b.succeed(t, texts...)
	if t.Command != nil || t.Failure != nil || len(t.Result.Records) != 2 || t.Projection != protocol.ProjectionReady {
		b.Fatalf("%+v", t)
	}
	got, err := b.store.Task(b.ctx, t.ID)
	b.must(err)
	b.same(got, t)
	for i, e := range t.Result.Records {
		r, err := b.store.RecordByNumber(b.ctx, "w", e.Number)
		b.must(err)
		if r.ID != e.ID || r.Text != texts[i] || !r.Projected || r.TaskID != t.ID {
			b.Fatalf("%+v", r)
		}
	}
	if _, ok, _ := b.store.NextDue(b.ctx); ok {
		b.Fatal("something is due")
	}
}

func freedIdentity(b *bundle) {
	b.accept(add("r"))
	t, _ := b.claim("t1")
	t = b.apply(protocol.Failing(t, protocol.Fail(protocol.Rejected, "no"), workspace("w"), 0, b.now), nil)
	_, err := b.store.TaskByIdentity(b.ctx, t.Identity.Hash)
	b.wants(err, protocol.ErrNotFound)
	if again := b.accept(add("r")); again.ID == t.ID {
		b.Fatal("the reference was not free")
	}

	key := b.accept(infer("k"))
	var failed protocol.Task
	for failed.ID != key.ID {
		c, ok := b.claim("t2")
		if !ok {
			b.Fatal("nothing is due")
		}
		if c.ID == key.ID {
			failed = b.apply(protocol.Failing(c, protocol.Fail(protocol.Rejected, "no"), workspace("w"), 0, b.now), nil)
		}
	}
	if _, twin, err := b.store.Accept(b.ctx, b.proposal(infer("k"))); err != nil || !twin {
		b.Fatalf("a key was freed: %v, %v", twin, err)
	}
	ws, change, err := protocol.Redrive(failed, workspace("w"), b.now)
	if !change {
		b.Fatal("not redriven")
	}
	if run := b.apply(ws, err); run.Run != 2 || run.State != protocol.Pending || run.Reservation == failed.Reservation {
		b.Fatalf("%+v", run)
	}
}

func reservationEndsOnce(b *bundle) {
	b.accept(infer("k"))
	t, _ := b.claim("t1")
	t = b.apply(protocol.FreezePlan(t, nil, nil, 0, b.now))
	t = b.apply(protocol.Commit(t, b.now))
	ws, err := protocol.Finish(t, b.now)
	b.must(err)
	bogus := ws
	bogus.Entries = append([]protocol.Entry(nil), ws.Entries...)
	bogus.Entries[0].Of = "reserve:task_none:1"
	_, err = b.store.Apply(b.ctx, bogus)
	b.wants(err, protocol.ErrInvariant)
	done := b.apply(ws, nil)
	again := protocol.WriteSet{If: protocol.Condition{State: protocol.Succeeded}, Task: done, Entries: ws.Entries}
	_, err = b.store.Apply(b.ctx, again)
	b.wants(err, protocol.ErrInvariant)
	if bal, _ := b.store.Balance(b.ctx, t.Account); bal.Spent != 2 || bal.Reserved != 0 {
		b.Fatalf("%+v", bal)
	}
}
