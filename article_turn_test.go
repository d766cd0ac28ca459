package memwrite_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/mockserver"
)

func samsTurn() memwrite.TurnRequest {
	return memwrite.TurnRequest{
		TenantID: "default", UserID: "sam", Text: samsRun,
		Role: "user", Speaker: "sam", OccurredAt: samsTime,
	}
}

// add_turn answers before the facts are stored.
func TestArticleTurnAccepted(t *testing.T) {
	t.Parallel()
	t.Run("sdk", func(t *testing.T) {
		t.Parallel()
		srv := mockserver.Run(t)
		got, err := srv.Client(t).AddTurn(t.Context(), samsTurn())
		if err != nil {
			t.Fatal(err)
		}
		if got.ProcessingStatus != memwrite.TurnDistilling || got.AlreadyExists || got.TurnRequestID == "" {
			t.Fatalf("got %+v", got)
		}
	})
	t.Run("wire", func(t *testing.T) {
		t.Parallel()
		w := onTheWire(t, mockserver.Run(t))
		got := w.turn(turnBody)
		if got.status/100 != 2 {
			t.Fatalf("status %d: %s", got.status, got.body)
		}
		id := fmt.Sprint(w.fields(got)["request_id"])
		if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(id) {
			t.Errorf("request_id %q", id)
		}
		sameJSON(t, got, fmt.Sprintf(`{
			"memory_id": null,
			"status": "processing",
			"processing_status": "distilling",
			"embed_mode": "none",
			"already_exists": false,
			"processing_error": null,
			"request_id": %q
		}`, id))
	})
}

// The identical turn sent again is a replay, and nothing is extracted twice.
func TestArticleTurnReplayed(t *testing.T) {
	t.Parallel()
	t.Run("sdk", func(t *testing.T) {
		t.Parallel()
		srv := mockserver.Run(t)
		client := srv.Client(t)
		mustTurn(t, client, samsTurn())
		again := mustTurn(t, client, samsTurn())
		if again.ProcessingStatus != memwrite.TurnReplayed || !again.AlreadyExists {
			t.Fatalf("got %+v", again)
		}
		if n := len(srv.Tasks()); n != 1 {
			t.Errorf("%d tasks for one turn", n)
		}
	})
	t.Run("wire", func(t *testing.T) {
		t.Parallel()
		srv := mockserver.Run(t)
		w := onTheWire(t, srv)
		w.turn(turnBody)
		sameJSON(t, w.turn(turnBody), `{
			"memory_id": null,
			"status": "ok",
			"processing_status": "skipped_replay",
			"embed_mode": "none",
			"already_exists": true,
			"processing_error": null,
			"request_id": null
		}`)
		if n := len(srv.Tasks()); n != 1 {
			t.Errorf("%d tasks for one turn", n)
		}
	})
}

// A retry stamped with a new occurred_at looks like a new turn, even when it
// names the same instant in other words.
func TestArticleTurnNewTimestampIsNew(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"2026-06-16T09:30:07Z", "2026-06-16T09:30:00.000Z", "2026-06-16T09:30:00+00:00"} {
		t.Run("sdk "+at, func(t *testing.T) {
			t.Parallel()
			client := mockserver.Run(t).Client(t)
			mustTurn(t, client, samsTurn())
			later := samsTurn()
			later.OccurredAt = at
			if got := mustTurn(t, client, later); got.ProcessingStatus != memwrite.TurnDistilling {
				t.Fatalf("got %+v", got)
			}
		})
		t.Run("wire "+at, func(t *testing.T) {
			t.Parallel()
			w := onTheWire(t, mockserver.Run(t))
			w.turn(turnBody)
			got := w.fields(w.turn(strings.Replace(turnBody, samsTime, at, 1)))
			if got["processing_status"] != "distilling" || got["already_exists"] != false {
				t.Errorf("got %v", got)
			}
		})
	}
}

// An assistant turn stores nothing. The SDK does not even send it.
func TestArticleTurnAssistantSkipped(t *testing.T) {
	t.Parallel()
	t.Run("sdk", func(t *testing.T) {
		t.Parallel()
		srv := mockserver.Run(t)
		client := srv.Client(t)
		turn := samsTurn()
		turn.Role = "assistant"
		if got := mustTurn(t, client, turn); got.ProcessingStatus != memwrite.SkippedNonUser {
			t.Fatalf("got %+v", got)
		}
		if n := len(srv.Journal()); n != 0 {
			t.Errorf("%d requests for a turn that stores nothing", n)
		}
		turn.SendNonUser = true
		if got := mustTurn(t, client, turn); got.ProcessingStatus != memwrite.SkippedNonUser {
			t.Fatalf("when sent, got %+v", got)
		}
		wantRecords(t, srv)
	})
	t.Run("wire", func(t *testing.T) {
		t.Parallel()
		srv := mockserver.Run(t)
		w := onTheWire(t, srv)
		body := strings.Replace(turnBody, `"role":"user"`, `"role":"assistant"`, 1)
		for range 2 { // it leaves no receipt, so it is never a replay
			got := w.fields(w.turn(body))
			if got["processing_status"] != "skipped_non_user_turn" || got["already_exists"] != false || got["status"] != "ok" {
				t.Errorf("got %v", got)
			}
		}
		wantRecords(t, srv)
	})
}
