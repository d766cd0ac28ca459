package mockserver_test

import (
	"strings"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/mockserver"
)

func TestErrorCodesOfFishMem(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.Credits(2))
	c := newCaller(t, srv)
	ok := `{"content":"I like tea","user_id":"sam"}`
	for _, tc := range []struct {
		method, path, body string
		status             int
		code               string
		header             []string
	}{
		{"POST", "/v1/memories", ok, 401, "INVALID_API_KEY", []string{"Authorization", ""}},
		{"POST", "/v1/memories", ok, 401, "INVALID_API_KEY", []string{"Authorization", "Bearer fm_nope"}},
		{"POST", "/v1/memories", ok, 401, "INVALID_API_KEY", []string{"Authorization", "Bearer " + srv.MemorySyncKey}},
		{"POST", "/v1/memories", ok, 400, "IDEMPOTENCY_KEY_REQUIRED", nil},
		{"POST", "/v1/memories", ok, 400, "INVALID_IDEMPOTENCY_KEY", []string{"Idempotency-Key", "  "}},
		{"POST", "/v1/memories", ok, 400, "INVALID_IDEMPOTENCY_KEY", []string{"Idempotency-Key", strings.Repeat("k", 201)}},
		{"POST", "/v1/memories", `[]`, 400, "INVALID_BODY", nil},
		{"POST", "/v1/memories", ok + `x`, 400, "INVALID_BODY", nil},
		{"POST", "/v1/memories", ok, 400, "INVALID_BODY", []string{"Content-Type", "text/plain"}},
		{"POST", "/v1/memories", `{"a":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, 400, "INVALID_BODY", nil},
		{"POST", "/v1/memories", `{"content":"x","user_id":null,"agent_id":"a"}`, 400, "INVALID_REQUEST", nil},
		{"POST", "/v1/memories", `{"content":" ","user_id":"sam"}`, 400, "INVALID_REQUEST", nil},
		{"POST", "/v1/memories", `{"content":"x"}`, 400, "INVALID_REQUEST", nil},
		{"POST", "/v1/memories", `{"content":"x","user_id":"sam","event_date":"2026-01-01T00:00:00+08:00"}`, 400, "INVALID_REQUEST", nil},
		{"POST", "/v1/memories", `{"messages":[{"role":"king","content":"x"}],"user_id":"sam"}`, 400, "INVALID_REQUEST", nil},
		{"POST", "/v1/memories", `{"messages":[` + strings.Repeat(`{"role":"user","content":"x"},`, 500) + `{"role":"user","content":"x"}],"user_id":"sam"}`, 400, "INVALID_REQUEST", nil},
		{"POST", "/v1/memories", `{"content":"` + strings.Repeat("x", 250_000) + `","user_id":"sam"}`, 400, "INVALID_REQUEST", nil},
		{"POST", "/v1/memories", `{"content":"` + strings.Repeat("x", 2<<20) + `","user_id":"sam"}`, 400, "INVALID_REQUEST", nil},
		{"GET", "/v1/memories", "", 400, "SCOPE_REQUIRED", nil},
		{"GET", "/v1/memories?user_id=a&cursor=!!", "", 400, "INVALID_CURSOR", nil},
		{"GET", "/v1/memories?user_id=a&limit=x", "", 400, "INVALID_REQUEST", nil},
		{"GET", "/v1/memories/nope", "", 404, "MEMORY_NOT_FOUND", nil},
		{"POST", "/v1/memories/search", `{"query":" ","user_id":"a"}`, 400, "INVALID_QUERY", nil},
		{"POST", "/v1/memories/search", `{"query":"x"}`, 400, "SCOPE_REQUIRED", nil},
		{"POST", "/v1/memories/search", `{"query":"x","user_id":"a","filters":{"and":[]}}`, 400, "INVALID_FILTER", nil},
		{"POST", "/v1/memories/search", `{"query":"x","user_id":"a","limit":51}`, 400, "INVALID_REQUEST", nil},
		{"GET", "/v1/events?limit=101", "", 400, "INVALID_REQUEST", nil},
		{"GET", "/v1/events?status=DONE", "", 400, "INVALID_REQUEST", nil},
		{"GET", "/v1/events?cursor=abc", "", 400, "INVALID_CURSOR", nil},
		{"GET", "/v1/events/task_none", "", 404, "EVENT_NOT_FOUND", nil},
		{"GET", "/v1/operations/task_none", "", 404, "OPERATION_NOT_FOUND", nil},
		{"POST", "/v1/operations/task_none/retry", "", 404, "OPERATION_NOT_RETRYABLE", nil},
		{"PATCH", "/v1/memories", "", 405, "METHOD_NOT_ALLOWED", nil},
		{"GET", "/v1/memories/a/b/c", "", 404, "NOT_FOUND", nil},
		{"POST", "/v1/memories", ok, 202, "", []string{"Idempotency-Key", "k1"}},
		{"POST", "/v1/memories", ok, 402, "INSUFFICIENT_CREDITS", []string{"Idempotency-Key", "k2"}},
		{"POST", "/v1/memories", ok, 202, "", []string{"Idempotency-Key", "k1"}},
	} {
		c.want(c.do(tc.method, tc.path, tc.body, tc.header...), tc.status, tc.code)
	}
	read := srv.NewKey(srv.Workspace, "fishmem", "memory:read")
	c.want(c.do("POST", "/v1/memories", ok, "Authorization", "Bearer "+read), 403, "INSUFFICIENT_PERMISSION")
	c.want(c.do("GET", "/v1/events", "", "Authorization", "Bearer "+read), 200, "")
	c.want(c.do("GET", "/v1/events/x", "", "Authorization", "Bearer "+read), 403, "INSUFFICIENT_PERMISSION")
	srv.ExpireKey(read, srv.Workspace, "fishmem", srv.Now().Add(time.Hour), "memory:read")
	c.want(c.do("GET", "/v1/events", "", "Authorization", "Bearer "+read), 200, "")
	srv.Advance(time.Hour)
	c.want(c.do("GET", "/v1/events", "", "Authorization", "Bearer "+read), 401, "API_KEY_EXPIRED")
}

func TestErrorCodesOfMemorySync(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	for _, tc := range []struct {
		body   string
		status int
		code   string
		header []string
	}{
		{note, 400, "MISSING_END_USER_ID", []string{"X-End-User-ID", ""}},
		{note, 401, "API key missing", []string{"X-API-Key", ""}},
		{note, 401, "Invalid API key", []string{"X-API-Key", "ms_live_nope"}},
		{note, 401, "Invalid API key", []string{"Authorization", "Bearer nope"}},
		{note, 400, "INVALID_TENANT_ID_FORMAT", []string{"X-Tenant-ID", "a_b"}},
		{note, 403, "Tenant does not belong to this key", []string{"X-Tenant-ID", "other"}},
		{note, 403, "Project does not belong to this key", []string{"X-Project-ID", "proj_0123456789abcdef"}},
		{`{"text":"I like it"}`, 422, "VALIDATION_ERROR", nil},
		{`{"text":"I like tea a lot","client_ref":"` + strings.Repeat("r", 129) + `"}`, 422, "VALIDATION_ERROR", nil},
		{`{"text":"I like tea a lot","importance":2}`, 422, "VALIDATION_ERROR", nil},
		{`{"text":"I like tea a lot","ttl_minutes":0}`, 422, "VALIDATION_ERROR", nil},
		{`{"text":"I like tea a lot","ttl_minutes":153722868}`, 422, "VALIDATION_ERROR", nil}, // more than a time.Duration holds
		{`{"text":"I like tea a lot","ttl_minutes":153722867}`, 201, "", nil},
		{`{}`, 422, "VALIDATION_ERROR", nil},
		{`{} {}`, 422, "VALIDATION_ERROR", nil},
		{`{"text":"I like tea a lot","metadata":{"a":"` + strings.Repeat("x", 64_000) + `"}}`, 413, "metadata is too large", nil},
		{`{"text":"` + strings.Repeat("x", 2<<20) + `"}`, 413, "", nil},
		{`{"text":"I like tea a lot","source":null,"client_ref":"` + strings.Repeat("é", 128) + `"}`, 201, "", nil},
	} {
		c.want(c.do("POST", "/memory/add", tc.body, tc.header...), tc.status, tc.code)
	}
	c.want(c.do("GET", "/memory/add", ""), 422, "")
	c.want(c.do("PUT", "/memory/add", ""), 405, "Method Not Allowed")
	read := srv.NewKey(srv.Workspace, "memorysync", "memory:read")
	c.want(c.do("POST", "/memory/add", note, "X-API-Key", read), 403, "Insufficient scope. Missing: memory:add")
	c.want(c.do("GET", "/org/projects", "", "X-API-Key", read), 403, "Insufficient scope. Missing: projects:read")
	srv.RevokeKey(read, srv.Workspace, "memorysync")
	c.want(c.do("GET", "/org/projects", "", "X-API-Key", read), 403, "API key revoked")

	srv.Arm(mockserver.Fault{Kind: mockserver.ProviderInvalid, Times: -1})
	c.want(c.do("POST", "/memory/add", `{"text":"I like coffee a lot","client_ref":"f"}`), 500, "EXTRACTION_FAILED")
	srv.Disarm()
	c.want(c.do("POST", "/memory/add", `{"text":"I like coffee a lot","client_ref":"f"}`), 201, "")
}

func TestQuotaSilentAndStrict(t *testing.T) {
	t.Parallel()
	turn := `{"tenant_id":"default","user_id":"sam","text":"I moved to Lisbon last month."}`
	silent := mockserver.Run(t, mockserver.Adds(1, false))
	c := newCaller(t, silent)
	c.want(c.do("POST", "/memory/add", note), 201, "")
	c.want(c.do("POST", "/memory/add", note), 200, "")
	if got := c.want(c.do("POST", "/memory/add", `{"text":"I like tea a lot"}`), 200, "").fields(); len(got) != 1 || got["status"] != "ok" {
		t.Errorf("silent quota: %v", got)
	}
	for range 2 {
		if got := c.do("POST", "/v1/memory/add_turn", turn).fields(); got["processing_status"] != "skipped" {
			t.Errorf("silent quota: %v", got)
		}
	}
	silent.Advance(32 * 24 * time.Hour)
	if got := c.do("POST", "/v1/memory/add_turn", turn).fields(); got["processing_status"] != "distilling" {
		t.Errorf("in the next month: %v", got)
	}
	strict := mockserver.Run(t, mockserver.Adds(0, true))
	c = newCaller(t, strict)
	got := c.want(c.do("POST", "/memory/add", note), 429, "limit_exceeded")
	if got.header.Get("Retry-After") != "" {
		t.Error("a monthly quota asks for a retry")
	}
}

func TestRateLimitsOfBothWires(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.RateLimits())
	srv.Freeze()
	c := newCaller(t, srv)
	c.want(c.do("GET", "/org/projects", ""), 200, "")
	c.want(c.do("GET", "/org/projects", ""), 200, "")
	got := c.want(c.do("GET", "/org/projects", ""), 429, "RATE_LIMIT_EXCEEDED")
	if got.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After %q", got.header.Get("Retry-After"))
	}
	srv.Advance(time.Second)
	c.want(c.do("GET", "/org/projects", ""), 200, "")
	got = c.do("GET", "/v1/health", "")
	if got.header.Get("RateLimit-Limit") != "600" || got.header.Get("RateLimit-Policy") != "600;w=60" {
		t.Errorf("headers %v", got.header)
	}
}
