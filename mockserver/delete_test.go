package mockserver_test

import (
	"testing"

	"github.com/memwrite/memwrite-go/mockserver"
)

// A deletion is an operation of the store like a write: what it answered under
// its key is known after a restart, and its key is taken for writes.
func TestADeletionUnderAKeyOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	first := mockserver.Run(t)
	c := newCaller(t, first)
	for _, text := range []string{"one", "two", "three"} {
		c.want(c.do("POST", "/v1/memories", `{"content":"`+text+`","user_id":"sam","infer":false}`), 200, "")
	}
	page := c.do("GET", "/v1/memories?user_id=sam", "").fields()["results"].([]any)
	id := page[0].(map[string]any)["id"].(string)
	c.want(c.do("DELETE", "/v1/memories/"+id, "", "Idempotency-Key", "d1"), 200, "")
	c.want(c.do("DELETE", "/v1/memories?user_id=sam", "", "Idempotency-Key", "all"), 200, "")

	snap, err := first.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	second := mockserver.Run(t)
	if err := second.Restore(snap); err != nil {
		t.Fatal(err)
	}
	if err := second.Check(); err != nil {
		t.Fatal(err)
	}
	c = newCaller(t, second)
	c.want(c.do("POST", "/v1/memories", `{"content":"later","user_id":"sam","infer":false}`), 200, "")
	one := c.want(c.do("DELETE", "/v1/memories/"+id, "", "Idempotency-Key", "d1"), 200, "")
	if one.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("a deletion was forgotten: %s", one.body)
	}
	all := c.want(c.do("DELETE", "/v1/memories?user_id=sam", "", "Idempotency-Key", "all"), 200, "")
	if all.header.Get("Idempotent-Replayed") != "true" || all.fields()["deleted"] != 2.0 {
		t.Errorf("the replay of a deletion: %s", all.body)
	}
	if left := c.do("GET", "/v1/memories?user_id=sam", "").fields()["results"].([]any); len(left) != 1 {
		t.Errorf("a replay deleted what came later: %d memories", len(left))
	}
	c.want(c.do("POST", "/v1/memories", thursday, "Idempotency-Key", "all"), 409, "IDEMPOTENCY_CONFLICT")
	c.want(c.do("DELETE", "/v1/memories?user_id=kim", "", "Idempotency-Key", "all"), 409, "IDEMPOTENCY_CONFLICT")
	c.want(c.do("DELETE", "/v1/memories/"+id, "", "Idempotency-Key", "all"), 409, "IDEMPOTENCY_CONFLICT")
	if l := second.Ledger(); l.Reserved != 4 || l.Settled != 4 {
		t.Errorf("deletions were charged: %+v", l)
	}
}
