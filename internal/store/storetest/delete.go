package storetest

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// stored makes records on FishMem's wire and gives them, newest first.
func (b *bundle) stored(key string, texts ...string) []protocol.Record {
	b.Helper()
	b.accept(infer(key))
	t, _ := b.claim("t-" + key)
	b.succeed(t, texts...)
	rs, err := b.store.Records(b.ctx, fishRecords(b))
	b.must(err)
	return rs
}

func fishRecords(b *bundle) protocol.RecordQuery {
	return protocol.RecordQuery{Workspace: "w", Wire: protocol.FishMem, Scope: protocol.Scope{UserID: "sam"}, Now: b.now}
}

func (b *bundle) deletion(key string, targets ...protocol.Record) protocol.Acceptance {
	b.tasks++
	c := protocol.Command{Kind: protocol.DeleteAll, Scope: protocol.Scope{UserID: "sam"}, Key: key}
	return protocol.Accept(protocol.Proposal{Workspace: workspace("w"), Command: &c, TaskID: taskID(b.tasks), MaxAttempts: 2, Now: b.now, Targets: targets})
}

func deletionIsOneTransaction(b *bundle) {
	rs := b.stored("k", "one", "two", "three")
	if len(rs) != 3 {
		b.Fatalf("%d records", len(rs))
	}
	before, err := b.store.Balance(b.ctx, protocol.AccountAt("w", protocol.Credits, b.now))
	b.must(err)
	gone, twin, err := b.store.Accept(b.ctx, b.deletion("d", rs[0], rs[1]))
	b.must(err)
	if twin || gone.State != protocol.Succeeded || len(gone.Result.Records) != 2 {
		b.Fatalf("twin %v, %+v", twin, gone)
	}
	for _, r := range rs[:2] {
		got, err := b.store.Record(b.ctx, "w", r.ID)
		b.must(err)
		if !got.Forgotten || got.Text != "" || got.TaskID != r.TaskID {
			b.Fatalf("%+v", got)
		}
	}
	left, err := b.store.Records(b.ctx, fishRecords(b))
	b.must(err)
	if len(left) != 1 || left[0].ID != rs[2].ID {
		b.Fatalf("%d records are left", len(left))
	}
	after, err := b.store.Balance(b.ctx, before.Account)
	b.must(err)
	if after != before {
		b.Fatalf("a deletion was charged: %+v, %+v", before, after)
	}

	// A record that went meanwhile: nothing of the deletion is kept.
	_, _, err = b.store.Accept(b.ctx, b.deletion("late", rs[2], rs[0]))
	b.wants(err, protocol.ErrStale)
	if still, err := b.store.Record(b.ctx, "w", rs[2].ID); err != nil || still.Forgotten {
		b.Fatalf("half a deletion was written: %v", err)
	}
	_, err = b.store.TaskByIdentity(b.ctx, protocol.CommandKey("w", "late"))
	b.wants(err, protocol.ErrNotFound)

	// The twin gets what the first one took, and takes nothing itself.
	again, twin, err := b.store.Accept(b.ctx, b.deletion("d", rs[2]))
	b.must(err)
	if !twin {
		b.Fatal("deleted twice under one key")
	}
	b.same(again, gone)
	if still, err := b.store.Record(b.ctx, "w", rs[2].ID); err != nil || still.Forgotten {
		b.Fatalf("a replay deleted: %v", err)
	}
	// One key space with the writes, in both directions.
	held, twin, err := b.store.Accept(b.ctx, b.proposal(infer("d")))
	b.must(err)
	if !twin || held.ID != gone.ID {
		b.Fatal("the key of a deletion was taken by a write")
	}
	held, twin, err = b.store.Accept(b.ctx, b.deletion("k", rs[2]))
	b.must(err)
	if !twin || held.Kind != protocol.Infer {
		b.Fatal("the key of a write was taken by a deletion")
	}
	if _, ok, _ := b.store.NextDue(b.ctx); ok {
		b.Fatal("something is due")
	}
}

func concurrentDeletionsTakeARecordOnce(b *bundle) {
	rs := b.stored("k", "one")
	var won atomic.Int64
	var wg sync.WaitGroup
	proposals := make([]protocol.Acceptance, 8)
	for i := range proposals {
		proposals[i] = b.deletion("d"+string(rune('a'+i)), rs[0])
	}
	for i := range proposals {
		wg.Go(func() {
			_, _, err := b.store.Accept(b.ctx, proposals[i])
			switch {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, protocol.ErrStale):
				b.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		b.Fatalf("%d deletions took one record", won.Load())
	}
}
