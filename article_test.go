package memwrite_test

import (
	"bytes"
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
