package mockserver_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"

	memwrite "github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/mockserver"
)

// operationIDs is every operation of the contract.
func operationIDs(t *testing.T) []string {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile("../openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			out = append(out, op.OperationID)
		}
	}
	slices.Sort(out)
	return out
}

// everyOperation fails for an operation without a test, and for the reverse.
func everyOperation[T any](t *testing.T, tests map[string]T) {
	t.Helper()
	ids := operationIDs(t)
	for _, id := range ids {
		if _, ok := tests[id]; !ok {
			t.Errorf("operation %s has no test", id)
		}
	}
	for id := range tests {
		if !slices.Contains(ids, id) {
			t.Errorf("openapi.yaml has no operation %s", id)
		}
	}
}

// seeded is what the operations below find on a server.
type seeded struct {
	number int64  // of a memory of "acme"
	event  string // that SUCCEEDED
	memory string // of the event, in the scope of "sam"
	failed string // an event that FAILED
}

func seed(t *testing.T, c *caller) seeded {
	t.Helper()
	var out seeded
	out.number = int64(c.want(c.do("POST", "/memory/add", note), 201, "").fields()["id"].(float64))
	c.want(c.do("POST", "/v1/memory/add_turn", `{"tenant_id":"default","user_id":"sam","text":"I moved to Lisbon last month.","speaker":"sam","occurred_at":"2026-01-01T00:00:00Z"}`), 201, "")
	for c.do("GET", "/v1/memory/default/sam/list", "").fields()["total"] == 0.0 {
	}
	out.event = c.want(c.do("POST", "/v1/memories", infer, "Idempotency-Key", "good"), 202, "").fields()["event_id"].(string)
	out.memory = c.ended(out.event)["results"].([]any)[0].(map[string]any)["id"].(string)
	c.srv.Arm(mockserver.Fault{Kind: mockserver.ProviderInvalid, Key: "bad"})
	out.failed = c.want(c.do("POST", "/v1/memories", infer, "Idempotency-Key", "bad"), 202, "").fields()["event_id"].(string)
	c.ended(out.failed)
	return out
}

// Every operation of the contract answers over a connection as the contract
// says, and says what was written.
func TestEveryOperationOfTheServer(t *testing.T) {
	t.Parallel()
	type test struct {
		method, path, body string
		status             int
		holds              func(m map[string]any) bool
		header             []string
	}
	has := func(field string, want any) func(map[string]any) bool {
		return func(m map[string]any) bool { return fmt.Sprint(m[field]) == fmt.Sprint(want) }
	}
	some := func(field string) func(map[string]any) bool {
		return func(m map[string]any) bool { l, _ := m[field].([]any); return len(l) > 0 }
	}
	tests := map[string]func(s seeded) test{
		"addMemory": func(seeded) test {
			return test{"POST", "/memory/add", `{"text":"I am allergic to peanuts.","client_ref":"note-2"}`, 201, has("text", "Allergic to peanuts"), nil}
		},
		"bulkAddMemories": func(seeded) test {
			return test{"POST", "/memory/bulk-add", `{"items":[{"text":"We use Redis 8."},{"text":"ok"},{"text":"I sing"}]}`, 207,
				func(m map[string]any) bool { return m["created"] == 1.0 && m["skipped"] == 1.0 && m["rejected"] == 1.0 }, nil}
		},
		"getMemory": func(s seeded) test {
			return test{"GET", fmt.Sprint("/memory/", s.number), "", 200, has("text", "Ships releases every Thursday"), nil}
		},
		"queryMemories": func(seeded) test {
			return test{"POST", "/memory/query", `{"query":"when are releases?"}`, 200, some("memories"), nil}
		},
		"forgetMemories": func(s seeded) test {
			return test{"DELETE", "/memory/forget", fmt.Sprintf(`{"memory_ids":[%d]}`, s.number), 200, has("deleted", 1), nil}
		},
		"addTurn": func(seeded) test {
			return test{"POST", "/v1/memory/add_turn", `{"tenant_id":"default","user_id":"sam","text":"I work as a nurse in Bristol.","speaker":"sam","occurred_at":"2026-01-02T00:00:00Z"}`, 201, has("processing_status", "distilling"), nil}
		},
		"queryTurnMemories": func(seeded) test {
			return test{"POST", "/v1/memory/query", `{"tenant_id":"default","user_id":"sam","prompt":"Lisbon"}`, 200, some("memories"), nil}
		},
		"recallMemories": func(seeded) test {
			return test{"POST", "/v1/memory/recall", `{"tenant_id":"default","user_id":"sam","prompt":"Lisbon"}`, 200, some("memories"), nil}
		},
		"listTurnMemories": func(seeded) test {
			return test{"GET", "/v1/memory/default/sam/list?limit=1", "", 200, some("memories"), nil}
		},
		"listProjects":     func(seeded) test { return test{"GET", "/org/projects", "", 200, nil, nil} },
		"memorySyncHealth": func(seeded) test { return test{"GET", "/health", "", 200, has("status", "ok"), nil} },
		"createMemories": func(seeded) test {
			return test{"POST", "/v1/memories", infer, 202, has("status", "PENDING"), []string{"Idempotency-Key", "new"}}
		},
		"listMemories": func(seeded) test { return test{"GET", "/v1/memories?user_id=sam", "", 200, some("results"), nil} },
		"searchMemories": func(seeded) test {
			return test{"POST", "/v1/memories/search", `{"query":"tea","user_id":"sam"}`, 200, some("results"), nil}
		},
		"getFishMemory": func(s seeded) test {
			return test{"GET", "/v1/memories/" + s.memory, "", 200, has("id", s.memory), nil}
		},
		"deleteMemory": func(s seeded) test {
			return test{"DELETE", "/v1/memories/" + s.memory, "", 200, has("deleted", true), []string{"Idempotency-Key", "d"}}
		},
		"deleteAllMemories": func(seeded) test {
			return test{"DELETE", "/v1/memories?user_id=sam", "", 200, has("deleted", 1), []string{"Idempotency-Key", "d"}}
		},
		"listEvents": func(seeded) test { return test{"GET", "/v1/events?status=FAILED", "", 200, some("results"), nil} },
		"getEvent": func(s seeded) test {
			return test{"GET", "/v1/events/" + s.event, "", 200, has("status", "SUCCEEDED"), nil}
		},
		"getOperation": func(s seeded) test {
			return test{"GET", "/v1/operations/" + s.failed, "", 200, has("status", "dead"), nil}
		},
		"retryOperation": func(s seeded) test {
			return test{"POST", "/v1/operations/" + s.failed + "/retry", "", 202, has("id", s.failed), nil}
		},
		"fishMemHealth": func(seeded) test { return test{"GET", "/v1/health", "", 200, has("status", "degraded"), nil} },
		"getUsage":      func(seeded) test { return test{"GET", "/v1/usage", "", 200, has("balanced", true), nil} },
	}
	everyOperation(t, tests)
	for id, make := range tests {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			c := newCaller(t, mockserver.Run(t))
			tc := make(seed(t, c))
			got := c.want(c.do(tc.method, tc.path, tc.body, tc.header...), tc.status, "")
			if tc.holds != nil && !tc.holds(got.fields()) {
				t.Errorf("%s", got.body)
			}
			if op := routed(t, c.router, tc.method, c.srv.URL+tc.path); op != id {
				t.Errorf("that was %s", op)
			}
		})
	}
}

func TestTheOlderNameOfAQuery(t *testing.T) {
	t.Parallel()
	c := newCaller(t, mockserver.Run(t))
	seed(t, c)
	const ask = `{"query":"when are releases?"}`
	old, now := c.want(c.do("POST", "/memory/retrieve", ask), 200, "").fields(), c.do("POST", "/memory/query", ask).fields()
	if fmt.Sprint(old["memories"]) != fmt.Sprint(now["memories"]) {
		t.Errorf("%v\n%v", old, now)
	}
	c.want(c.do("GET", "/memory/retrieve", ""), 422, "VALIDATION_ERROR") // as GET /memory/query: an id that is none
	c.want(c.do("POST", "/memory/retrieve", ask, "X-API-Key", ""), 401, "API key missing")
	c.want(c.do("POST", "/memory/retrieve", ask, "X-API-Key", c.srv.NewKey("default", "memorysync", "memory:add")), 403, "")
}

// Every operation of the contract can be asked for with the client.
func TestEveryOperationOfTheClient(t *testing.T) {
	t.Parallel()
	text := func(s string) memwrite.AddRequest {
		return memwrite.AddRequest{Text: s, EndUserID: "acme", Ref: memwrite.NewRef("op", "1")}
	}
	turns := memwrite.FactQuery{TenantID: "default", UserID: "sam", Prompt: "Lisbon"}
	sam := memwrite.Scope{UserID: "sam"}
	type call func(t *testing.T, c *memwrite.Client, s seeded) (fine bool, err error)
	calls := map[string]call{
		"addMemory": func(t *testing.T, c *memwrite.Client, _ seeded) (bool, error) {
			got, err := c.Add(t.Context(), text("We use Postgres 16."))
			return err == nil && got.Outcome == memwrite.Stored, err
		},
		"bulkAddMemories": func(t *testing.T, c *memwrite.Client, _ seeded) (bool, error) {
			got, err := c.BulkAdd(t.Context(), memwrite.BulkAddRequest{EndUserID: "acme", Items: []memwrite.BulkItem{{Text: "We use Redis 8."}, {Text: "ok"}, {Text: "I sing"}}})
			return err == nil && got.Created == 1 && got.Skipped == 1 && got.Rejected == 1, err
		},
		"getMemory": func(t *testing.T, c *memwrite.Client, s seeded) (bool, error) {
			got, err := c.Memory(t.Context(), "acme", s.number)
			return err == nil && got.ID == s.number, err
		},
		"queryMemories": func(t *testing.T, c *memwrite.Client, s seeded) (bool, error) {
			got, err := c.Query(t.Context(), memwrite.QueryRequest{EndUserID: "acme", Query: "when are releases?"})
			return err == nil && len(got) == 1 && got[0].ID == s.number && got[0].Score > 0, err
		},
		"forgetMemories": func(t *testing.T, c *memwrite.Client, s seeded) (bool, error) {
			got, err := c.Forget(t.Context(), memwrite.ForgetRequest{EndUserID: "acme", MemoryIDs: []int64{s.number}})
			return err == nil && got.Deleted == 1, err
		},
		"addTurn": func(t *testing.T, c *memwrite.Client, _ seeded) (bool, error) {
			got, err := c.AddTurn(t.Context(), memwrite.TurnRequest{TenantID: "default", UserID: "sam", Text: "I work as a nurse.", Role: "user", Speaker: "sam", OccurredAt: "2026-01-02T00:00:00Z"})
			return err == nil && got.ProcessingStatus == memwrite.TurnDistilling, err
		},
		"queryTurnMemories": func(t *testing.T, c *memwrite.Client, _ seeded) (bool, error) {
			got, err := c.QueryFacts(t.Context(), turns)
			return len(got) == 1, err
		},
		"recallMemories": func(t *testing.T, c *memwrite.Client, _ seeded) (bool, error) {
			got, err := c.Recall(t.Context(), turns)
			return err == nil && len(got.Facts) == 1 && got.Context != "", err
		},
		"listTurnMemories": func(t *testing.T, c *memwrite.Client, _ seeded) (bool, error) {
			got, err := c.Facts(t.Context(), "default", "sam", 0)
			return len(got) == 1, err
		},
		"listProjects": func(t *testing.T, c *memwrite.Client, _ seeded) (bool, error) {
			got, err := c.Projects(t.Context())
			return len(got) == 1 && got[0].TenantID == "default", err
		},
		"memorySyncHealth": healthy, "fishMemHealth": healthy,
		"createMemories": func(t *testing.T, c *memwrite.Client, _ seeded) (bool, error) {
			got, err := c.AddAsync(t.Context(), memwrite.InferRequest{Key: memwrite.NewRef("op", "2"), Scope: sam, Content: "I like coffee"})
			return err == nil && got.EventID != "", err
		},
		"listMemories": func(t *testing.T, c *memwrite.Client, s seeded) (bool, error) {
			for got, err := range c.Memories(t.Context(), sam) {
				return got.ID == s.memory, err
			}
			return false, nil
		},
		"searchMemories": func(t *testing.T, c *memwrite.Client, s seeded) (bool, error) {
			got, err := c.Search(t.Context(), memwrite.SearchRequest{Scope: sam, Query: "tea", Mode: "typed", SortBy: "recent",
				Filters: []byte(`{"not":{"field":"content","operator":"contains","value":"coffee"}}`)})
			return len(got) == 1 && got[0].ID == s.memory, err
		},
		"getFishMemory": func(t *testing.T, c *memwrite.Client, s seeded) (bool, error) {
			got, err := c.Record(t.Context(), s.memory)
			return err == nil && got.AccessCount == 1, err
		},
		"deleteMemory": func(t *testing.T, c *memwrite.Client, s seeded) (bool, error) {
			got, err := c.Delete(t.Context(), memwrite.NewRef("op", "3"), s.memory)
			return err == nil && got.Deleted == 1, err
		},
		"deleteAllMemories": func(t *testing.T, c *memwrite.Client, _ seeded) (bool, error) {
			got, err := c.DeleteAll(t.Context(), memwrite.NewRef("op", "4"), sam)
			return err == nil && got.Deleted == 1, err
		},
		"listEvents": func(t *testing.T, c *memwrite.Client, s seeded) (bool, error) {
			for got, err := range c.Events(t.Context(), memwrite.EventFilter{Status: memwrite.Failed}) {
				return got.ID == s.failed, err
			}
			return false, nil
		},
		"getEvent": func(t *testing.T, c *memwrite.Client, s seeded) (bool, error) {
			got, err := c.Event(t.Context(), s.event)
			return err == nil && got.Status == memwrite.Succeeded, err
		},
		"getOperation": func(t *testing.T, c *memwrite.Client, s seeded) (bool, error) {
			got, err := c.Operation(t.Context(), s.failed)
			return err == nil && got.Status == "dead", err
		},
		"retryOperation": func(t *testing.T, c *memwrite.Client, s seeded) (bool, error) {
			got, err := c.Redrive(t.Context(), s.failed)
			return err == nil && got.ID == s.failed && got.Status != memwrite.Failed, err
		},
		"getUsage": func(t *testing.T, c *memwrite.Client, _ seeded) (bool, error) {
			got, err := c.Usage(t.Context())
			return err == nil && got.Balanced, err
		},
	}
	everyOperation(t, calls)
	for id, call := range calls {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			c := newCaller(t, mockserver.Run(t))
			s := seed(t, c)
			before := len(c.srv.Journal())
			if fine, err := call(t, c.srv.Client(t), s); err != nil || !fine {
				t.Errorf("not the answer: %v", err)
			}
			asked := slices.ContainsFunc(c.srv.Journal()[before:], func(r mockserver.Request) bool {
				return routed(t, c.router, r.Method, c.srv.URL+r.Path) == id
			})
			if !asked {
				t.Errorf("%s was never asked for", id)
			}
		})
	}
}

func healthy(t *testing.T, c *memwrite.Client, _ seeded) (bool, error) {
	got, err := c.Health(t.Context())
	return err == nil && got != nil, err
}

// routed is the operation a request is for.
func routed(t *testing.T, router routers.Router, method, to string) string {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	route, _, err := router.FindRoute(&http.Request{Method: method, URL: u, Host: u.Host})
	if err != nil {
		return err.Error()
	}
	return route.Operation.OperationID
}
