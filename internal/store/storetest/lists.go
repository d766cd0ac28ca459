package storetest

import (
	"sync"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

func listsAreOrderedAndPaged(b *bundle) {
	var want []string
	for i, k := range []string{"a", "b", "c", "d", "e"} {
		if i != 3 { // two of one moment: then the id decides
			b.now = b.now.Add(time.Second)
		}
		want = append([]string{b.accept(infer(k)).ID}, want...)
	}
	b.accept(add("other kind"))
	var got []string
	var after *protocol.Place
	for {
		ts, err := b.store.Tasks(b.ctx, protocol.TaskQuery{Workspace: "w", Kinds: []protocol.Kind{protocol.Infer}, After: after, Limit: 2})
		b.must(err)
		if len(ts) == 0 {
			break
		}
		for _, t := range ts {
			got = append(got, t.ID)
			after = &protocol.Place{Created: t.CreatedAt, ID: t.ID}
		}
	}
	if len(got) != len(want) {
		b.Fatalf("got %v, want %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			b.Fatalf("got %v, want %v", got, want)
		}
	}
	claimed, _ := b.claim("t1")
	ts, err := b.store.Tasks(b.ctx, protocol.TaskQuery{Workspace: "w", State: protocol.Running})
	b.must(err)
	if len(ts) != 1 || ts[0].ID != claimed.ID {
		b.Fatalf("%d are running", len(ts))
	}
}

func historyIsReadOnce(b *bundle) {
	b.accept(infer("a"))
	var seen []protocol.Transition
	read := func() {
		for {
			var after int64
			if n := len(seen); n > 0 {
				after = seen[n-1].Position
			}
			trs, err := b.store.Transitions(b.ctx, "w", after, 1)
			b.must(err)
			if len(trs) == 0 {
				return
			}
			seen = append(seen, trs...)
		}
	}
	read()
	t, _ := b.claim("t1")
	b.accept(infer("b"))
	read()
	b.succeed(t, "x")
	read()
	all, err := b.store.Transitions(b.ctx, "w", 0, 0)
	b.must(err)
	if len(all) != 4 || len(seen) != len(all) {
		b.Fatalf("a slow reader saw %d of %d", len(seen), len(all))
	}
	ids := map[string]bool{}
	for i := range all {
		if all[i] != seen[i] || ids[all[i].ID] {
			b.Fatalf("transition %d differs", i)
		}
		ids[all[i].ID] = true
	}
}

func recordsAndTombstones(b *bundle) {
	c := add("r")
	c.TTL = time.Hour
	b.accept(c)
	t, _ := b.claim("t1")
	t = b.succeed(t, "one", "two")
	q := protocol.RecordQuery{Workspace: "w", Wire: protocol.MemorySync, Scope: protocol.Scope{Tenant: "default", EndUser: "sam"}, Now: b.now}
	list := func() []protocol.Record {
		b.Helper()
		rs, err := b.store.Records(b.ctx, q)
		b.must(err)
		return rs
	}
	if rs := list(); len(rs) != 2 {
		b.Fatalf("%d records", len(rs))
	}
	for _, none := range []protocol.RecordQuery{
		{Workspace: "w", Wire: protocol.FishMem, Scope: protocol.Scope{UserID: "sam"}, Now: b.now},
		{Workspace: "w", Wire: protocol.MemorySync, Scope: protocol.Scope{EndUser: "kim"}, Now: b.now},
		{Workspace: "w", Wire: protocol.MemorySync, Scope: protocol.Scope{Tenant: "other", EndUser: "sam"}, Now: b.now},
	} {
		if rs, err := b.store.Records(b.ctx, none); err != nil || len(rs) != 0 {
			b.Fatalf("%+v lists %d, %v", none, len(rs), err)
		}
	}
	similar := func(now time.Time) int {
		b.Helper()
		rs, err := b.store.Similar(b.ctx, "w", protocol.MemorySync, t.Scope, "fact", "self/x", now)
		b.must(err)
		return len(rs)
	}
	if similar(b.now) != 2 || similar(b.now.Add(time.Hour)) != 0 {
		b.Fatal("what is compared is not what is live")
	}
	first, err := b.store.RecordByNumber(b.ctx, "w", t.Result.Records[0].Number)
	b.must(err)
	b.must(b.store.PutRecord(b.ctx, first.Forget(b.now)))
	b.wants(b.store.PutRecord(b.ctx, first), protocol.ErrNotFound)
	gone, err := b.store.Record(b.ctx, "w", first.ID)
	b.must(err)
	if !gone.Forgotten || gone.Text != "" || gone.Number != first.Number {
		b.Fatalf("%+v", gone)
	}
	if len(list()) != 1 || similar(b.now) != 1 {
		b.Fatal("a forgotten record is still listed")
	}
	q.Now = b.now.Add(time.Hour)
	if len(list()) != 0 {
		b.Fatal("an expired record is listed")
	}
	b.wants(b.store.PutRecord(b.ctx, protocol.Record{ID: "none", Workspace: "w"}), protocol.ErrNotFound)
}

func numbersAreNeverGivenTwice(b *bundle) {
	var mu sync.Mutex
	given := map[int64]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			first, err := b.store.Allot(b.ctx, 3)
			if err != nil {
				b.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for n := first; n < first+3; n++ {
				if n <= 0 || given[n] {
					b.Errorf("number %d was given before", n)
				}
				given[n] = true
			}
		})
	}
	wg.Wait()
}
