package mockserver_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/mockserver"
)

const note = `{"text":"My team ships releases every Thursday.","client_ref":"note-0001"}`

func TestMemorySyncOperations(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	first := c.want(c.do("POST", "/memory/add", note), 201, "").fields()
	if first["text"] != "Ships releases every Thursday" || first["id"] != float64(66437) {
		t.Errorf("stored %v", first)
	}
	again := c.want(c.do("POST", "/memory/add", note), 200, "")
	if again.header.Get("Idempotent-Replayed") != "true" || again.fields()["reason"] != "already_ingested" {
		t.Errorf("again: %s", again.body)
	}
	if got := c.want(c.do("POST", "/memory/add", `{"text":"Thanks!"}`), 200, "").fields(); got["reason"] != "low_value" {
		t.Errorf("filler: %v", got)
	}
	if got := c.want(c.do("POST", "/memory/add", `{"text":"Could you help me with this?"}`), 200, "").fields(); got["reason"] != "no_high_value_content" {
		t.Errorf("nothing: %v", got)
	}
	one := c.want(c.do("POST", "/memory/add", `{"text":"I am allergic to peanuts.","metadata":{"n":12345678901234567890},"tags":["Food","food"]}`), 201, "")
	two := c.want(c.do("POST", "/memory/add", `{"text":"I am allergic to peanuts."}`), 201, "")
	if string(one.body) != string(two.body) {
		t.Errorf("an exact repeat differs:\n%s%s", one.body, two.body)
	}
	if !strings.Contains(string(one.body), "12345678901234567890") {
		t.Errorf("metadata lost digits: %s", one.body)
	}
	id := fmt.Sprint(int64(first["id"].(float64)))
	c.want(c.do("GET", "/memory/"+id, ""), 200, "")
	c.want(c.do("GET", "/memory/"+id, "", "X-End-User-ID", "someone-else"), 404, "Memory not found")
	c.want(c.do("GET", "/memory/999", ""), 404, "Memory not found")
	c.want(c.do("GET", "/memory/abc", ""), 422, "VALIDATION_ERROR")
	found := c.want(c.do("POST", "/memory/query", `{"query":"when are releases?","k":500}`), 200, "").fields()["memories"].([]any)
	if len(found) == 0 || found[0].(map[string]any)["id"] != first["id"] {
		t.Errorf("query: %v", found)
	}
	c.want(c.do("POST", "/memory/query", `{"query":" "}`), 422, "VALIDATION_ERROR")
	bulk := c.want(c.do("POST", "/memory/bulk-add", `{"items":[{"text":"We use Postgres 16."},{"text":"I like it"},{"text":"Thanks"},{"text":"I am allergic to peanuts."}]}`), 207, "").fields()
	if bulk["created"] != 1.0 || bulk["rejected"] != 1.0 || bulk["skipped"] != 2.0 {
		t.Errorf("bulk: %v", bulk)
	}
	gone := c.want(c.do("DELETE", "/memory/forget", `{"memory_ids":[`+id+`,"m_5"]}`), 200, "").fields()
	if gone["deleted"] != 1.0 {
		t.Errorf("forget: %v", gone)
	}
	if gone := c.want(c.do("DELETE", "/memory/forget", `{"memory_ids":[`+id+`]}`), 200, "").fields(); gone["deleted"] != 0.0 {
		t.Errorf("forget again: %v", gone)
	}
	c.want(c.do("GET", "/memory/"+id, ""), 404, "Memory not found")
	if got := c.want(c.do("POST", "/memory/add", note), 200, "").fields(); fmt.Sprint(got["memory_ids"]) != "["+fmt.Sprint(first["id"])+"]" {
		t.Errorf("after forget: %v", got)
	}
	c.want(c.do("GET", "/org/projects", ""), 200, "")
	c.want(c.do("GET", "/health", "", "X-API-Key", ""), 200, "")
}

func TestTurnOperations(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	turn := func(text, role, at string) string {
		return fmt.Sprintf(`{"tenant_id":"default","user_id":"sam","text":%q,"role":%q,"speaker":"sam","occurred_at":%q}`, text, role, at)
	}
	run := "I ran my first 10K last weekend and finished in 58 minutes."
	for _, step := range []struct{ body, want string }{
		{turn(run, "user", "2026-06-16T09:30:00Z"), "distilling"},
		{turn(run, "user", "2026-06-16T09:30:00Z"), "skipped_replay"},
		{turn(run, "user", "2026-06-16T09:30:00+00:00"), "distilling"},
		{turn(run, "assistant", "2026-06-16T09:31:00Z"), "skipped_non_user_turn"},
		{turn("ok thanks", "user", "2026-06-16T09:32:00Z"), "skipped_low_value"},
		{turn("ok thanks", "user", "2026-06-16T09:32:00Z"), "skipped_low_value"},
		{turn("assistant: "+run, "", "2026-06-16T09:33:00Z"), "skipped_non_user_turn"},
	} {
		if got := c.want(c.do("POST", "/v1/memory/add_turn", step.body), 201, "").fields(); got["processing_status"] != step.want {
			t.Errorf("%s: %v, want %s", step.body, got["processing_status"], step.want)
		}
	}
	srv.Advance(31 * 24 * time.Hour)
	if got := c.do("POST", "/v1/memory/add_turn", turn(run, "user", "2026-06-16T09:30:00Z")).fields(); got["processing_status"] != "distilling" {
		t.Errorf("after 30 days: %v", got)
	}
	c.want(c.do("POST", "/v1/memory/add_turn", `{"tenant_id":"default","user_id":"sam","text":""}`), 422, "text must not be empty")
	c.want(c.do("POST", "/v1/memory/add_turn", `{"tenant_id":"other","user_id":"sam","text":"I like tea a lot"}`), 403, "")
	c.want(c.do("POST", "/v1/memory/query", `{"tenant_id":"default","user_id":"sam","prompt":"10K"}`), 200, "")
	c.want(c.do("POST", "/v1/memory/recall", `{"tenant_id":"default","user_id":"sam","prompt":"10K"}`), 200, "")
	c.want(c.do("GET", "/v1/memory/default/sam/list?limit=1", ""), 200, "")
	c.want(c.do("GET", "/v1/memory/other/sam/list", ""), 403, "")
}

func TestFishMemOperations(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	const body = `{"content":"My team ships releases every Thursday.","user_id":"sam"}`
	receipt := c.want(c.do("POST", "/v1/memories", body, "Idempotency-Key", "k1"), 202, "").fields()
	id := receipt["event_id"].(string)
	event := c.ended(id)
	if event["status"] != "SUCCEEDED" || len(event["results"].([]any)) != 1 {
		t.Fatalf("event %v", event)
	}
	again := c.want(c.do("POST", "/v1/memories", ` {"user_id":" sam ","infer":true,"unknown":1,"content":"My team ships releases every Thursday."}`, "Idempotency-Key", " k1 "), 202, "")
	if again.header.Get("Idempotent-Replayed") != "true" || again.fields()["event_id"] != id || again.fields()["status"] != "SUCCEEDED" {
		t.Errorf("replay: %s", again.body)
	}
	c.want(c.do("POST", "/v1/memories", strings.Replace(body, "Thursday", "Friday", 1), "Idempotency-Key", "k1"), 409, "IDEMPOTENCY_CONFLICT")
	c.want(c.do("POST", "/v1/memories", strings.Replace(body, `"user_id"`, `"infer":false,"user_id"`, 1), "Idempotency-Key", "k1"), 409, "IDEMPOTENCY_CONFLICT")
	for range 2 {
		got := c.want(c.do("POST", "/v1/memories", `{"messages":[{"role":"user","content":"a b"},{"role":"assistant","content":"c d"}],"infer":false,"user_id":"sam"}`, "Idempotency-Key", "k2"), 200, "").fields()
		if len(got["results"].([]any)) != 2 {
			t.Errorf("verbatim: %v", got)
		}
	}
	c.want(c.do("POST", "/v1/memories", `{"content":"no key","infer":false,"user_id":"sam"}`), 200, "")
	c.want(c.do("POST", "/v1/memories", `{"content":"no key","infer":false,"user_id":"sam"}`), 200, "")

	page := c.want(c.do("GET", "/v1/memories?user_id=sam&limit=2", ""), 200, "").fields()
	next, _ := page["next_cursor"].(string)
	if len(page["results"].([]any)) != 2 || next == "" {
		t.Fatalf("page %v", page)
	}
	rest := c.want(c.do("GET", "/v1/memories?user_id=sam&limit=500&cursor="+url.QueryEscape(next), ""), 200, "").fields()
	if n := len(rest["results"].([]any)); n != 3 || rest["next_cursor"] != nil {
		t.Errorf("%d on the last page, cursor %v", n, rest["next_cursor"])
	}
	memory := page["results"].([]any)[0].(map[string]any)["id"].(string)
	c.want(c.do("GET", "/v1/memories/"+memory, ""), 200, "")
	c.want(c.do("DELETE", "/v1/memories/"+memory, "", "Idempotency-Key", "k1"), 409, "IDEMPOTENCY_CONFLICT")
	c.want(c.do("DELETE", "/v1/memories/"+memory, "", "Idempotency-Key", "d1"), 200, "")
	c.want(c.do("DELETE", "/v1/memories/"+memory, "", "Idempotency-Key", "d1"), 200, "")
	c.want(c.do("DELETE", "/v1/memories/"+memory, ""), 404, "MEMORY_NOT_FOUND")
	c.want(c.do("POST", "/v1/memories", body, "Idempotency-Key", "d1"), 409, "IDEMPOTENCY_CONFLICT")
	c.want(c.do("POST", "/v1/memories/search", `{"query":"releases","user_id":"sam"}`), 200, "")

	c.want(c.do("GET", "/v1/events?limit=1&status=SUCCEEDED", ""), 200, "")
	op := c.want(c.do("GET", "/v1/operations/"+id, ""), 200, "").fields()
	if op["status"] != "success" {
		t.Errorf("operation %v", op)
	}
	c.want(c.do("POST", "/v1/operations/"+id+"/retry", ""), 404, "OPERATION_NOT_RETRYABLE")
	c.want(c.do("GET", "/v1/health", ""), 200, "")
	usage := c.want(c.do("GET", "/v1/usage", ""), 200, "").fields()["credits"].(map[string]any)
	if usage["settled"] != 5.0 {
		t.Errorf("usage %v", usage)
	}
	for range 2 {
		got := c.want(c.do("DELETE", "/v1/memories?user_id=sam", "", "Idempotency-Key", "all"), 200, "").fields()
		if got["deleted"] != 4.0 {
			t.Errorf("delete all: %v", got)
		}
	}
}

func TestLongPollIsHeldUntilTheStateDiffers(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.RealTimes())
	c := newCaller(t, srv)
	held := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Point: mockserver.AfterInference})
	id := c.do("POST", "/v1/memories", `{"content":"I like tea a lot","user_id":"sam"}`, "Idempotency-Key", "k").fields()["event_id"].(string)
	for c.do("GET", "/v1/events/"+id, "").fields()["status"] != "RUNNING" {
	}
	got := make(chan reply, 1)
	go func() { got <- c.do("GET", "/v1/events/"+id, "", "Prefer", "wait=20") }()
	held.Release()
	answer := <-got
	if answer.fields()["status"] != "SUCCEEDED" || answer.header.Get("Preference-Applied") != "wait=20" {
		t.Errorf("held answer: %s %v", answer.body, answer.header)
	}
	srv.Freeze() // what is held now is held for good
	go func() { got <- c.do("GET", "/v1/events/"+id, "", "Prefer", "respond-async, wait=20") }()
	select {
	case <-got:
	case <-time.After(time.Minute):
		t.Error("a terminal event was held")
		srv.Thaw()
		<-got
	}
}

func TestAddThatTakesTooLongGoesOnBehindThe503(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.InlineWait(20*time.Millisecond), mockserver.RealTimes())
	c := newCaller(t, srv)
	held := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Key: "note-0001"})
	got := c.want(c.do("POST", "/memory/add", note), http.StatusServiceUnavailable, "")
	if got.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After %q", got.header.Get("Retry-After"))
	}
	held.Release()
	for {
		if got := c.do("POST", "/memory/add", note); got.status == 200 {
			break
		} else if got.status != 503 {
			t.Fatalf("then %d %s", got.status, got.body)
		}
	}
	srv.StoredOnce(t, "note-0001")
	srv.ChargedOnce(t, "note-0001")
}
