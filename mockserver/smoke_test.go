package mockserver_test

import (
	"testing"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/mockserver"
)

func TestOneOfEachWrite(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	client := srv.Client(t)
	ctx := t.Context()

	added, err := client.Add(ctx, memwrite.AddRequest{Text: "My team ships releases every Thursday.", EndUserID: "acme", Ref: memwrite.RefFromString("note-0001")})
	if err != nil || added.Outcome != memwrite.Stored || added.Memory.Text != "Ships releases every Thursday" {
		t.Fatalf("add: %+v, %v", added, err)
	}
	again, err := client.Add(ctx, memwrite.AddRequest{Text: "My team ships releases every Thursday.", EndUserID: "acme", Ref: memwrite.RefFromString("note-0001")})
	if err != nil || again.Outcome != memwrite.AlreadyIngested {
		t.Fatalf("add again: %+v, %v", again, err)
	}
	turn := memwrite.TurnRequest{TenantID: "default", UserID: "sam", Text: "I ran my first 10K last weekend and finished in 58 minutes.", Role: "user", Speaker: "sam", OccurredAt: "2026-06-16T09:30:00Z"}
	if _, err := client.AddTurn(ctx, turn); err != nil {
		t.Fatalf("turn: %v", err)
	}
	event, err := client.AddAndWait(ctx, memwrite.InferRequest{Key: memwrite.RefFromString("k1"), Scope: memwrite.Scope{UserID: "sam"}, Content: "I am allergic to peanuts."})
	if err != nil {
		t.Fatalf("infer: %+v, %v", event, err)
	}
	verbatim, err := client.AddVerbatim(ctx, memwrite.InferRequest{Key: memwrite.RefFromString("k2"), Scope: memwrite.Scope{UserID: "sam"}, Content: "Likes tea"})
	if err != nil || len(verbatim.Records) != 1 {
		t.Fatalf("verbatim: %+v, %v", verbatim, err)
	}
	if _, err := client.Forget(ctx, memwrite.ForgetRequest{EndUserID: "acme", MemoryIDs: added.MemoryIDs}); err != nil {
		t.Fatalf("forget: %v", err)
	}
	srv.StoredOnce(t, "k1")
	srv.ChargedOnce(t, "k1")
	srv.Sent(t, mockserver.Match{Route: "POST /memory/add", Key: "note-0001", Times: 2})
	srv.NeverSent(t, mockserver.Match{Route: "POST /memory/bulk-add"})
	if l := srv.Ledger(); !l.Balanced {
		t.Fatalf("ledger %+v", l)
	}
	start := time.Now()
	srv.Close()
	if d := time.Since(start); d > time.Minute {
		t.Fatalf("closing took %v", d)
	}
}
