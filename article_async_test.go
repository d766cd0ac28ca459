package memwrite_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/mockserver"
)

func infer(key, text string) memwrite.InferRequest {
	return memwrite.InferRequest{Key: memwrite.RefFromString(key), Scope: memwrite.Scope{UserID: customer}, Content: text}
}

// 202 is a receipt and no memory; the event owns the outcome.
func TestArticleAsyncReceiptThenEvent(t *testing.T) {
	t.Parallel()
	t.Run("sdk", func(t *testing.T) {
		t.Parallel()
		srv := mockserver.Run(t)
		client := srv.Client(t)
		receipt, err := client.AddAsync(t.Context(), infer("note-0001", note0001))
		if err != nil {
			t.Fatal(err)
		}
		if receipt.EventID == "" || receipt.Key != "note-0001" {
			t.Fatalf("receipt %+v", receipt)
		}
		event, err := client.WaitForEvent(t.Context(), receipt.EventID)
		if err != nil {
			t.Fatal(err)
		}
		if event.ID != receipt.EventID || event.Status != memwrite.Succeeded || len(event.Results) != 1 || event.Results[0].Memory != stored0001 {
			t.Fatalf("event %+v", event)
		}
		again, err := client.AddAsync(t.Context(), infer("note-0001", note0001))
		if err != nil || again.EventID != receipt.EventID || again.Status != memwrite.Succeeded {
			t.Fatalf("after completion: receipt %+v, error %v", again, err)
		}
		wantRecords(t, srv, stored0001)
	})
	t.Run("wire", func(t *testing.T) {
		t.Parallel()
		srv := mockserver.Run(t)
		w := onTheWire(t, srv)
		receipt := w.fields(w.memories(askBody, "note-0001").want(t, http.StatusAccepted))
		id := fmt.Sprint(receipt["event_id"])
		if !regexp.MustCompile(`^task_[0-9a-f]{32}$`).MatchString(id) {
			t.Errorf("event_id %q", id)
		}
		event := w.terminal(id)
		if event["status"] != "SUCCEEDED" || event["error"] != nil {
			t.Fatalf("event %v", event)
		}
		results, _ := json.Marshal(event["results"])
		if !strings.Contains(string(results), stored0001) {
			t.Errorf("results %s", results)
		}
		for _, hidden := range []string{"content", "messages", "payload", "lease"} {
			if _, shown := event[hidden]; shown {
				t.Errorf("the event shows %s", hidden)
			}
		}
		again := w.fields(w.memories(askBody, "note-0001").want(t, http.StatusAccepted))
		if again["event_id"] != receipt["event_id"] || again["status"] != "SUCCEEDED" {
			t.Errorf("replay %v", again)
		}
		wantRecords(t, srv, stored0001)
	})
}

// Same key, other command: a conflict, and no effect.
func TestArticleSameKeyOtherCommand(t *testing.T) {
	t.Parallel()
	t.Run("sdk", func(t *testing.T) {
		t.Parallel()
		srv := mockserver.Run(t)
		client := srv.Client(t)
		if _, err := client.AddAndWait(t.Context(), infer("note-0001", note0001)); err != nil {
			t.Fatal(err)
		}
		before := srv.Ledger()
		_, err := client.AddAsync(t.Context(), infer("note-0001", note0001v2))
		var e *memwrite.Error
		if !errors.Is(err, memwrite.ErrConflict) || !errors.As(err, &e) {
			t.Fatalf("error %v, want ErrConflict", err)
		}
		if e.Status != http.StatusConflict || e.Code != "IDEMPOTENCY_CONFLICT" || e.Tries != 1 || e.Identity != "note-0001" {
			t.Errorf("error %+v", e)
		}
		if v := memwrite.VerdictOf(err); v.Action != memwrite.DeadLetter {
			t.Errorf("verdict %v, want dead letter", v)
		}
		if after := srv.Ledger(); after != before {
			t.Errorf("the conflict changed the ledger from %+v to %+v", before, after)
		}
		wantRecords(t, srv, stored0001)
	})
	t.Run("wire", func(t *testing.T) {
		t.Parallel()
		srv := mockserver.Run(t)
		w := onTheWire(t, srv)
		receipt := w.fields(w.memories(askBody, "note-0001").want(t, http.StatusAccepted))
		other := strings.Replace(askBody, note0001, note0001v2, 1)
		for _, body := range []string{other, strings.Replace(askBody, "{", `{"infer":false,`, 1)} {
			refused := w.memories(body, "note-0001").want(t, http.StatusConflict)
			if e := w.fields(refused); e["code"] != "IDEMPOTENCY_CONFLICT" {
				t.Errorf("body %s", refused.body)
			}
		}
		w.terminal(fmt.Sprint(receipt["event_id"]))
		if n := len(srv.Tasks()); n != 1 {
			t.Errorf("%d tasks, want the first one alone", n)
		}
		wantRecords(t, srv, stored0001)
	})
}

// infer=false is stored at once and word for word.
func TestArticleVerbatimIsSynchronous(t *testing.T) {
	t.Parallel()
	t.Run("sdk", func(t *testing.T) {
		t.Parallel()
		srv := mockserver.Run(t)
		client := srv.Client(t)
		first, err := client.AddVerbatim(t.Context(), infer("note-0001", note0001))
		if err != nil || len(first.Records) != 1 || first.Records[0].Memory != note0001 {
			t.Fatalf("result %+v, error %v", first, err)
		}
		wantRecords(t, srv, note0001)
		again, err := client.AddVerbatim(t.Context(), infer("note-0001", note0001))
		if err != nil || len(again.Records) != 1 || again.Records[0].ID != first.Records[0].ID {
			t.Fatalf("replay %+v, error %v", again, err)
		}
		wantRecords(t, srv, note0001)
	})
	t.Run("wire", func(t *testing.T) {
		t.Parallel()
		srv := mockserver.Run(t)
		w := onTheWire(t, srv)
		body := strings.Replace(askBody, "{", `{"infer":false,`, 1)
		first := w.memories(body, "note-0001").want(t, http.StatusOK)
		var got struct {
			Results []struct{ ID, Memory, Event string }
		}
		if err := json.Unmarshal(first.body, &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Results) != 1 || got.Results[0].Memory != note0001 || got.Results[0].Event != "ADD" || got.Results[0].ID == "" {
			t.Fatalf("body %s", first.body)
		}
		wantRecords(t, srv, note0001)
		if again := w.memories(body, "note-0001").want(t, http.StatusOK); !bytes.Equal(again.body, first.body) {
			t.Errorf("replay %s, first %s", again.body, first.body)
		}
		wantRecords(t, srv, note0001)
	})
}
