package memwrite_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/mockserver"
)

// The values both articles use, so that a reader finds them again here.
const (
	note0001   = "My team ships releases every Thursday."
	stored0001 = "Ships releases every Thursday"
	note0001v2 = "My team ships releases every second Tuesday."
	peanuts    = "I am allergic to peanuts."
	samsRun    = "I ran my first 10K last weekend and finished in 58 minutes."
	samsTime   = "2026-06-16T09:30:00Z"
	customer   = "customer-7"

	addBody  = `{"text":"` + note0001 + `","client_ref":"note-0001"}`
	turnBody = `{"tenant_id":"default","user_id":"sam","text":"` + samsRun + `","role":"user","speaker":"sam","occurred_at":"` + samsTime + `"}`
	askBody  = `{"content":"` + note0001 + `","user_id":"` + customer + `"}`
)

func supportNote(id, text string) memwrite.AddRequest {
	return memwrite.AddRequest{Text: text, EndUserID: customer, Ref: memwrite.NewRef("note", id)}
}

func samsTurn() memwrite.TurnRequest {
	return memwrite.TurnRequest{
		TenantID: "default", UserID: "sam", Text: samsRun,
		Role: "user", Speaker: "sam", OccurredAt: samsTime,
	}
}

func infer(key, text string) memwrite.InferRequest {
	return memwrite.InferRequest{Key: memwrite.RefFromString(key), Scope: memwrite.Scope{UserID: customer}, Content: text}
}

// The first call answers 201 with the stored memory.
func TestArticleAddStored(t *testing.T) {
	t.Parallel()
	t.Run("sdk", func(t *testing.T) {
		t.Parallel()
		srv := mockserver.Run(t)
		got, err := srv.Client(t).Add(t.Context(), supportNote("0001", note0001))
		if err != nil {
			t.Fatal(err)
		}
		if got.Outcome != memwrite.Stored || got.Memory == nil || got.Memory.Text != stored0001 || got.Memory.ID <= 0 {
			t.Fatalf("got %+v", got)
		}
		if got.Ref.String() != "note-0001" || got.Tries != 1 || got.RequestID == "" {
			t.Errorf("ref %q, %d tries, request id %q", got.Ref, got.Tries, got.RequestID)
		}
		wantRecords(t, srv, stored0001)
	})
	t.Run("wire", func(t *testing.T) {
		t.Parallel()
		srv := mockserver.Run(t)
		w := onTheWire(t, srv)
		got := w.fields(w.add(addBody).want(t, http.StatusCreated))
		if got["text"] != stored0001 {
			t.Errorf("text %v", got["text"])
		}
		if id := fmt.Sprint(got["id"]); !regexp.MustCompile(`^[1-9][0-9]*$`).MatchString(id) {
			t.Errorf("id %s is not a plain integer", id)
		}
		wantRecords(t, srv, stored0001)
	})
}

// The same request again answers 200, says already_ingested and stores nothing.
func TestArticleAddAlreadyIngested(t *testing.T) {
	t.Parallel()
	t.Run("sdk", func(t *testing.T) {
		t.Parallel()
		srv := mockserver.Run(t)
		client := srv.Client(t)
		first := mustAdd(t, client, supportNote("0001", note0001))
		again := mustAdd(t, client, supportNote("0001", note0001))
		wantAlready(t, again, first.Memory.ID)
		if again.Reason != "already_ingested" || again.Ref.String() != "note-0001" {
			t.Errorf("reason %q, ref %q", again.Reason, again.Ref)
		}
		wantRecords(t, srv, stored0001)
	})
	t.Run("wire", func(t *testing.T) {
		t.Parallel()
		srv := mockserver.Run(t)
		w := onTheWire(t, srv)
		first := w.fields(w.add(addBody).want(t, http.StatusCreated))
		sameJSON(t, w.add(addBody).want(t, http.StatusOK), fmt.Sprintf(`{
			"status": "skipped",
			"reason": "already_ingested",
			"memory_ids": [%s],
			"client_ref": "note-0001",
			"candidates_extracted": 0,
			"candidates_stored": 0
		}`, first["id"]))
		wantRecords(t, srv, stored0001)
	})
}

// A reference names a record: other text under it comes back as already
// ingested, without a word. The SDK can be told to look.
func TestArticleAddEditedUnderOldRef(t *testing.T) {
	t.Parallel()
	t.Run("sdk", func(t *testing.T) {
		t.Parallel()
		srv := mockserver.Run(t)
		trusting := srv.Client(t, memwrite.WithVerifyText(false))
		first := mustAdd(t, trusting, supportNote("0001", note0001))
		wantAlready(t, mustAdd(t, trusting, supportNote("0001", note0001v2)), first.Memory.ID)

		checking := srv.Client(t, memwrite.WithVerifyText(true))
		_, err := checking.Add(t.Context(), supportNote("0001", note0001v2))
		if !errors.Is(err, memwrite.ErrRefReused) {
			t.Fatalf("error %v, want ErrRefReused", err)
		}
		if v := memwrite.VerdictOf(err); v.Action != memwrite.DeadLetter {
			t.Errorf("verdict %v, want dead letter", v)
		}
		wantAlready(t, mustAdd(t, checking, supportNote("0001", note0001)), first.Memory.ID)
		wantRecords(t, srv, stored0001)
	})
	t.Run("wire", func(t *testing.T) {
		t.Parallel()
		srv := mockserver.Run(t)
		w := onTheWire(t, srv)
		first := w.fields(w.add(addBody).want(t, http.StatusCreated))
		again := w.fields(w.add(strings.Replace(addBody, note0001, note0001v2, 1)).want(t, http.StatusOK))
		if again["reason"] != "already_ingested" || fmt.Sprint(again["memory_ids"]) != fmt.Sprintf("[%s]", first["id"]) {
			t.Errorf("got %v", again)
		}
		wantRecords(t, srv, stored0001)
	})
}

// An edited record needs a new reference, and forget on the old one's ids.
func TestArticleAddEditedUnderNewRef(t *testing.T) {
	t.Parallel()
	const edited = "Ships releases every second Tuesday"
	t.Run("sdk", func(t *testing.T) {
		t.Parallel()
		srv := mockserver.Run(t)
		client := srv.Client(t)
		first := mustAdd(t, client, supportNote("0001", note0001))
		v2 := supportNote("0001", note0001v2)
		v2.Ref = v2.Ref.Version(2)
		second := mustAdd(t, client, v2)
		if second.Outcome != memwrite.Stored || second.Ref.String() != "note-0001-v2" || second.Memory.Text != edited {
			t.Fatalf("got %+v", second)
		}
		if _, err := client.Forget(t.Context(), memwrite.ForgetRequest{EndUserID: customer, MemoryIDs: []int64{first.Memory.ID}}); err != nil {
			t.Fatal(err)
		}
		wantRecords(t, srv, edited)
	})
	t.Run("wire", func(t *testing.T) {
		t.Parallel()
		srv := mockserver.Run(t)
		w := onTheWire(t, srv)
		first := w.fields(w.add(addBody).want(t, http.StatusCreated))
		v2 := strings.NewReplacer(note0001, note0001v2, "note-0001", "note-0001-v2").Replace(addBody)
		if got := w.fields(w.add(v2).want(t, http.StatusCreated)); got["text"] != edited || got["id"] == first["id"] {
			t.Errorf("got %v", got)
		}
		w.memorySync(http.MethodDelete, "/memory/forget", fmt.Sprintf(`{"memory_ids":[%s]}`, first["id"])).want(t, http.StatusOK)
		w.memorySync(http.MethodGet, fmt.Sprintf("/memory/%s", first["id"]), "").want(t, http.StatusNotFound)
		wantRecords(t, srv, edited)
	})
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

// Without a client_ref an exact repeat gives the same memory twice, and the
// second answer does not tell that it was a repeat.
func TestArticleSameTextTwiceWithoutRef(t *testing.T) {
	t.Parallel()
	t.Run("sdk", func(t *testing.T) {
		t.Parallel()
		srv := mockserver.Run(t)
		client := srv.Client(t)
		req := memwrite.AddRequest{Text: peanuts, EndUserID: customer}
		first, second := mustAdd(t, client, req), mustAdd(t, client, req)
		if second.Outcome != memwrite.Stored || first.Memory.ID != second.Memory.ID {
			t.Fatalf("first %+v, second %+v", first, second)
		}
		wantRecords(t, srv, "Allergic to peanuts")
	})
	t.Run("wire", func(t *testing.T) {
		t.Parallel()
		srv := mockserver.Run(t)
		w := onTheWire(t, srv)
		body := `{"text":"` + peanuts + `"}`
		first := w.add(body).want(t, http.StatusCreated)
		second := w.add(body).want(t, http.StatusCreated)
		if !bytes.Equal(first.body, second.body) {
			t.Errorf("the bodies differ:\n%s\n%s", first.body, second.body)
		}
		wantRecords(t, srv, "Allergic to peanuts")
	})
}

// The server acts, the answer is lost, the client asks again: one memory.
func TestArticleTimeoutAfterServerActed(t *testing.T) {
	t.Parallel()
	t.Run("sdk", func(t *testing.T) {
		t.Parallel()
		srv := mockserver.Run(t)
		dropAnswer(t, srv)
		got := mustAdd(t, srv.Client(t), supportNote("0001", note0001))
		if got.Outcome != memwrite.AlreadyIngested || len(got.MemoryIDs) != 1 || got.Tries != 2 {
			t.Fatalf("got %+v", got)
		}
		wantRecords(t, srv, stored0001)
	})
	t.Run("sdk inferred", func(t *testing.T) {
		t.Parallel()
		srv := mockserver.Run(t)
		dropAnswer(t, srv)
		event, err := srv.Client(t).AddAndWait(t.Context(), infer("note-0001", note0001))
		if err != nil || len(event.Results) != 1 {
			t.Fatalf("event %+v, error %v", event, err)
		}
		if n := len(srv.Tasks()); n != 1 {
			t.Errorf("%d tasks for one write", n)
		}
		wantRecords(t, srv, stored0001)
	})
	t.Run("wire", func(t *testing.T) {
		t.Parallel()
		srv := mockserver.Run(t)
		dropAnswer(t, srv)
		w := onTheWire(t, srv)
		if got, err := w.tryAdd(addBody); err == nil {
			t.Fatalf("the answer was to be lost, got %d %s", got.status, got.body)
		}
		if got := w.fields(w.add(addBody).want(t, http.StatusOK)); got["reason"] != "already_ingested" {
			t.Errorf("got %v", got)
		}
		wantRecords(t, srv, stored0001)
	})
}

// A worker that crashes after the write and before the acknowledgement gets
// the message again.
func TestArticleQueueRedelivery(t *testing.T) {
	t.Parallel()
	t.Run("sdk", func(t *testing.T) {
		t.Parallel()
		srv := mockserver.Run(t)
		client := srv.Client(t)
		deliver := func() memwrite.Verdict {
			_, err := client.Add(t.Context(), supportNote("0001", note0001))
			return memwrite.VerdictOf(err)
		}
		deliver() // and the worker dies here
		if v := deliver(); v.Action != memwrite.Ack {
			t.Fatalf("the second delivery is %v, want ack", v)
		}
		wantRecords(t, srv, stored0001)
	})
	t.Run("wire", func(t *testing.T) {
		t.Parallel()
		srv := mockserver.Run(t)
		w := onTheWire(t, srv)
		w.add(addBody).want(t, http.StatusCreated)
		for range 3 {
			w.add(addBody).want(t, http.StatusOK)
		}
		wantRecords(t, srv, stored0001)
	})
}

// An agent that plans again, or a framework that retries a tool call, runs the
// save step twice, perhaps both at once.
func TestArticleAgentRepeatsStep(t *testing.T) {
	t.Parallel()
	t.Run("sdk", func(t *testing.T) {
		t.Parallel()
		srv := mockserver.Run(t)
		client := srv.Client(t)
		results := make([]*memwrite.AddResult, 8)
		errs := make([]error, len(results))
		var all sync.WaitGroup
		for i := range results {
			all.Go(func() { results[i], errs[i] = client.Add(t.Context(), supportNote("0001", note0001)) })
		}
		all.Wait()
		stored := 0
		for i, got := range results {
			switch {
			case errs[i] != nil:
				t.Fatal(errs[i])
			case got.Outcome == memwrite.Stored:
				stored++
			case got.Outcome != memwrite.AlreadyIngested:
				t.Errorf("step %d: %+v", i, got)
			}
		}
		if stored != 1 {
			t.Errorf("%d of %d steps were told they stored it, want 1", stored, len(results))
		}
		wantRecords(t, srv, stored0001)
	})
	t.Run("wire", func(t *testing.T) {
		t.Parallel()
		srv := mockserver.Run(t)
		w := onTheWire(t, srv)
		answers := make([]said, 8)
		var all sync.WaitGroup
		for i := range answers {
			all.Go(func() { answers[i], _ = w.tryAdd(addBody) })
		}
		all.Wait()
		count := map[int]int{}
		for _, a := range answers {
			count[a.status]++
		}
		if count[http.StatusCreated] != 1 || count[http.StatusOK] != len(answers)-1 {
			t.Errorf("statuses %v, want one 201 and the rest 200", count)
		}
		wantRecords(t, srv, stored0001)
	})
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
