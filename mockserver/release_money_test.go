package mockserver_test

import (
	"strings"
	"testing"

	"github.com/memwrite/memwrite-go/mockserver"
)

func TestReleaseSuccessChargesOnceAndTerminalFailureRefundsOnce(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.Credits(4))
	c := newCaller(t, srv)
	good := c.infers("good", thursday)
	c.whole(good, "good")
	srv.Arm(mockserver.Fault{Kind: mockserver.ProviderDown, Times: 5})
	bad := c.infers("bad", strings.Replace(thursday, "Thursday", "Friday", 1))
	c.refunded(bad, "bad")
	for range 3 { // looking again and sending again move no money
		c.infers("good", thursday)
		c.infers("bad", strings.Replace(thursday, "Thursday", "Friday", 1))
	}
	if l := srv.Ledger(); l.Reserved != 2 || l.Settled != 1 || l.Released != 1 || l.Open != 0 {
		t.Errorf("ledger %+v", l)
	}
	// The refund can be spent, and only once.
	next := c.infers("next", strings.Replace(thursday, "Thursday", "Monday", 1))
	c.whole(next, "next")
	c.want(c.do("POST", "/v1/memories", thursday, "Idempotency-Key", "more"), 402, "INSUFFICIENT_CREDITS")
	c.want(c.do("POST", "/v1/operations/"+bad+"/retry", ""), 402, "INSUFFICIENT_CREDITS")
	c.refunded(bad, "bad")
	if l := srv.Ledger(); l.Reserved != 3 || l.Settled != 2 || l.Released != 1 {
		t.Errorf("ledger %+v", l)
	}
}

func TestReleaseRawInputIsGoneAndTheEventStillUseful(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	const raw = "My team ships"
	stored := func() string {
		t.Helper()
		out, err := srv.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	held := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Point: mockserver.AfterInference})
	id := c.infers("secret-key", thursday)
	c.struck(held, 1)
	if !strings.Contains(stored(), raw) {
		t.Fatal("the input is not where this test looks for it")
	}
	held.Release()
	c.whole(id, "secret-key")
	for _, word := range []string{raw, "secret-key"} {
		if strings.Contains(stored(), word) {
			t.Errorf("%q is still stored", word)
		}
	}
	views := [][]byte{c.do("GET", "/v1/events/"+id, "").body, c.do("GET", "/v1/events", "").body, c.do("GET", "/v1/operations/"+id, "").body}
	for _, view := range views {
		if strings.Contains(string(view), raw) || strings.Contains(string(view), `"lease`) {
			t.Errorf("a view tells %s", view)
		}
		if !strings.Contains(string(view), id) {
			t.Errorf("a view has lost the event: %s", view)
		}
	}
	event := c.event(id)
	result := event["results"].([]any)[0].(map[string]any)
	c.want(c.do("GET", "/v1/memories/"+result["id"].(string), ""), 200, "")
	if event["latency_ms"] == nil || event["started_at"] == nil || event["write_summary"].(map[string]any)["outcome"] != "STORED" {
		t.Errorf("event %v", event)
	}
	// The fingerprint is enough to know the command again, and another one.
	if again := c.infers("secret-key", thursday); again != id {
		t.Error("the command was not recognised after redaction")
	}
	c.want(c.do("POST", "/v1/memories", strings.Replace(thursday, "Thursday", "Friday", 1), "Idempotency-Key", "secret-key"), 409, "IDEMPOTENCY_CONFLICT")
}
