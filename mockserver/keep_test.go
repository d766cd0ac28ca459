package mockserver_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/mockserver"
)

// nowhere asserts that no stored row and no answer holds a word. The journal
// keeps what was sent, for the test; it is no part of what is stored.
func (c *caller) nowhere(word string, paths ...string) {
	c.t.Helper()
	stored, err := c.srv.Snapshot()
	if err != nil {
		c.t.Fatal(err)
	}
	if strings.Contains(string(stored), word) {
		c.t.Errorf("%q is still stored", word)
	}
	for _, path := range paths {
		if got := c.do("GET", path, ""); strings.Contains(string(got.body), word) {
			c.t.Errorf("GET %s still says %q: %s", path, word, got.body)
		}
	}
}

// A memory that is forgotten is gone from its record, from the task that made
// it, from those that found it there, and from every view. Ids and answers to
// repeats stay.
func TestAForgottenMemoryIsNowhere(t *testing.T) {
	t.Parallel()
	const secret = "peanuts"
	srv := mockserver.Run(t)
	c := newCaller(t, srv)

	// FishMem, inferred.
	id := c.infers("k", `{"content":"I am allergic to peanuts.","user_id":"sam"}`)
	memory := c.whole(id, "k")["results"].([]any)[0].(map[string]any)
	if !strings.Contains(memory["memory"].(string), secret) {
		t.Fatalf("kept %v", memory)
	}
	c.want(c.do("DELETE", "/v1/memories/"+memory["id"].(string), ""), 200, "")
	c.nowhere(secret, "/v1/events", "/v1/events/"+id, "/v1/operations/"+id, "/v1/memories?user_id=sam")
	after := c.event(id)["results"].([]any)[0].(map[string]any)
	if after["id"] != memory["id"] || after["memory"] != "" {
		t.Errorf("the event says %v of a forgotten memory", after)
	}
	if again := c.infers("k", `{"content":"I am allergic to peanuts.","user_id":"sam"}`); again != id {
		t.Error("the command was not recognised")
	}

	// FishMem, verbatim: a repeat is answered byte for byte, out of itself.
	verbatim := `{"content":"peanuts are in the pantry","user_id":"sam","infer":false}`
	first := c.want(c.do("POST", "/v1/memories", verbatim, "Idempotency-Key", "v"), 200, "")
	var body struct{ Results []struct{ ID string } }
	if err := json.Unmarshal(first.body, &body); err != nil || len(body.Results) != 1 {
		t.Fatalf("%s, %v", first.body, err)
	}
	c.want(c.do("DELETE", "/v1/memories/"+body.Results[0].ID, ""), 200, "")
	c.nowhere(secret, "/v1/memories?user_id=sam")
	if again := c.want(c.do("POST", "/v1/memories", verbatim, "Idempotency-Key", "v"), 200, ""); string(again.body) != string(first.body) {
		t.Errorf("replayed as %s, was %s", again.body, first.body)
	}

	// MemorySync: the second add found the first one's memory.
	made := c.want(c.do("POST", "/memory/add", `{"text":"I am allergic to peanuts.","client_ref":"a"}`), 201, "").fields()["id"].(float64)
	found := c.want(c.do("POST", "/memory/add", `{"text":"I am allergic to peanuts.","client_ref":"b"}`), 201, "").fields()["id"].(float64)
	if made != found {
		t.Fatalf("ids %v and %v", made, found)
	}
	c.want(c.do("DELETE", "/memory/forget", fmt.Sprintf(`{"memory_ids":[%.0f]}`, made)), 200, "")
	c.nowhere(secret, fmt.Sprintf("/v1/memory/%s/acme/list", srv.Workspace))
	for _, ref := range []string{"a", "b"} {
		got := c.want(c.do("POST", "/memory/add", fmt.Sprintf(`{"text":"I am allergic to peanuts.","client_ref":%q}`, ref)), 200, "").fields()
		if got["reason"] != "already_ingested" || fmt.Sprint(got["memory_ids"]) != fmt.Sprint([]any{made}) {
			t.Errorf("%s is answered %v", ref, got)
		}
	}
	c.sound()
}

// A memory that is forgotten while its own write is between commit and end does
// not come back with the end, and its text is gone when that is there.
func TestForgettingInFrontOfTheEnd(t *testing.T) {
	t.Parallel()
	for _, point := range []mockserver.Point{mockserver.AfterCommit, mockserver.BeforeFinish} {
		srv := mockserver.Run(t, mockserver.RealTimes())
		c := newCaller(t, srv)
		held := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Point: point})
		id := c.infers("k", `{"content":"I am allergic to peanuts.","user_id":"sam"}`)
		c.struck(held, 1)
		memory := c.want(c.do("GET", "/v1/memories?user_id=sam", ""), 200, "").fields()["results"].([]any)[0].(map[string]any)["id"].(string)
		c.want(c.do("DELETE", "/v1/memories/"+memory, ""), 200, "")
		held.Release()
		c.ended(id)
		c.nowhere("peanuts", "/v1/events/"+id)
		c.want(c.do("GET", "/v1/memories/"+memory, ""), 404, "MEMORY_NOT_FOUND")
		c.sound()
	}
}

// A FAILED write keeps its input for a redrive, and not for ever.
func TestAFailedWriteKeepsItsInputForThirtyDays(t *testing.T) {
	t.Parallel()
	const raw = "My team ships"
	srv := mockserver.Run(t, mockserver.RealTimes())
	c := newCaller(t, srv)
	holds := func() bool {
		t.Helper()
		out, err := srv.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(out), raw)
	}
	srv.Arm(mockserver.Fault{Kind: mockserver.ProviderInvalid, Times: 3})
	early, late := c.infers("early", thursday), c.infers("late", thursday)
	c.refunded(early, "early")
	c.refunded(late, "late")
	srv.Advance(30*24*time.Hour - time.Minute)
	c.want(c.do("POST", "/v1/operations/"+early+"/retry", ""), 202, "") // fails once more: another thirty days
	c.refunded(early, "early")
	before := c.do("GET", "/v1/events/"+late, "").body
	if !holds() {
		t.Fatal("the input was gone before its time")
	}
	srv.Advance(time.Hour)
	for {
		if task, _ := srv.TaskByKey("late"); task.Redacted {
			break
		}
		c.do("GET", "/v1/health", "")
	}
	c.want(c.do("POST", "/v1/operations/"+late+"/retry", ""), 404, "OPERATION_NOT_RETRYABLE")
	// What became of it is as it was, and its key is what it was.
	if after := c.do("GET", "/v1/events/"+late, "").body; string(after) != string(before) {
		t.Errorf("event\n%sbecame\n%s", before, after)
	}
	if again := c.infers("late", thursday); again != late {
		t.Error("the key was freed")
	}
	c.want(c.do("POST", "/v1/memories", day("Friday"), "Idempotency-Key", "late"), 409, "IDEMPOTENCY_CONFLICT")
	c.want(c.do("POST", "/v1/operations/"+early+"/retry", ""), 202, "")
	c.whole(early, "early")
	if holds() {
		t.Error("the input is still stored")
	}
}

// An add or a turn that FAILED cannot be redriven: its caller sends it again. So
// it keeps nothing at all.
func TestAFailedAddKeepsNothing(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	srv.Arm(mockserver.Fault{Kind: mockserver.ProviderInvalid, Times: 2})
	c.want(c.do("POST", "/memory/add", `{"text":"I am allergic to peanuts.","client_ref":"a"}`), 500, "EXTRACTION_FAILED")
	turn := fmt.Sprintf(`{"tenant_id":%q,"user_id":"acme","role":"user","text":"I am allergic to peanuts."}`, srv.Workspace)
	c.want(c.do("POST", "/v1/memory/add_turn", turn), 201, "")
	for srv.Ledger().Released != 2 {
		c.do("GET", "/health", "")
	}
	c.nowhere("peanuts")
	c.sound()
	c.want(c.do("POST", "/memory/add", `{"text":"I am allergic to peanuts.","client_ref":"a"}`), 201, "")
}
