package api_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

const contractPath = "../../openapi.yaml"

func loadContract(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile(contractPath)
	if err != nil {
		t.Fatalf("load the contract: %v", err)
	}
	return doc
}

// operations visits every operation of the contract in the order of its paths.
func operations(doc *openapi3.T, visit func(path, method string, op *openapi3.Operation)) {
	for _, path := range doc.Paths.InMatchingOrder() {
		for method, op := range doc.Paths.Value(path).Operations() {
			visit(path, method, op)
		}
	}
}

// TestContractValidates covers the examples as well: they are the values a
// reader learns the protocol from.
func TestContractValidates(t *testing.T) {
	t.Parallel()
	doc := loadContract(t)
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatalf("the contract or one of its examples is not valid: %v", err)
	}
	if doc.OpenAPI != "3.0.3" {
		t.Errorf("the contract says openapi %s, want 3.0.3", doc.OpenAPI)
	}
}

// TestContractHasNoConst: the generator makes interface{} of it, and OpenAPI
// 3.0 does not know it.
func TestContractHasNoConst(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(contractPath)
	if err != nil {
		t.Fatal(err)
	}
	if at := regexp.MustCompile(`(?m)[{,\s]const:`).FindIndex(text); at != nil {
		t.Errorf("the contract uses const at byte %d", at[0])
	}
}

func TestContractOperations(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"POST /memory/add":                    "addMemory",
		"DELETE /memory/forget":               "forgetMemories",
		"GET /memory/{id}":                    "getMemory",
		"POST /memory/query":                  "queryMemories",
		"POST /memory/bulk-add":               "bulkAddMemories",
		"POST /v1/memory/add_turn":            "addTurn",
		"POST /v1/memory/query":               "queryTurnMemories",
		"POST /v1/memory/recall":              "recallMemories",
		"GET /v1/memory/{tenant}/{user}/list": "listTurnMemories",
		"GET /org/projects":                   "listProjects",
		"GET /health":                         "memorySyncHealth",
		"POST /v1/memories":                   "createMemories",
		"GET /v1/memories":                    "listMemories",
		"DELETE /v1/memories":                 "deleteAllMemories",
		"POST /v1/memories/search":            "searchMemories",
		"GET /v1/memories/{id}":               "getFishMemory",
		"DELETE /v1/memories/{id}":            "deleteMemory",
		"GET /v1/events":                      "listEvents",
		"GET /v1/events/{id}":                 "getEvent",
		"GET /v1/operations/{id}":             "getOperation",
		"POST /v1/operations/{id}/retry":      "retryOperation",
		"GET /v1/health":                      "fishMemHealth",
		"GET /v1/usage":                       "getUsage",
	}
	got := map[string]string{}
	operations(loadContract(t), func(path, method string, op *openapi3.Operation) {
		got[method+" "+path] = op.OperationID
	})
	if !maps.Equal(got, want) {
		t.Errorf("operations differ:\n got %v\nwant %v", got, want)
	}
}

// TestContractNamesOneAuthHeader: a request with both headers is refused by
// MemorySync even when its key is good, so no operation may take two.
func TestContractNamesOneAuthHeader(t *testing.T) {
	t.Parallel()
	doc := loadContract(t)
	if len(doc.Security) != 0 {
		t.Error("the contract has a security default; each operation must name its own")
	}
	operations(doc, func(path, method string, op *openapi3.Operation) {
		want := "fishMemKey"
		switch {
		case path == "/health":
			want = ""
		case strings.HasPrefix(path, "/memory/"), strings.HasPrefix(path, "/v1/memory/"), strings.HasPrefix(path, "/org/"):
			want = "memorySyncKey"
		}
		if op.Security == nil {
			t.Errorf("%s %s does not say which auth header it takes", method, path)
			return
		}
		var schemes []string
		for _, requirement := range *op.Security {
			schemes = append(schemes, slices.Collect(maps.Keys(requirement))...)
		}
		if got := strings.Join(schemes, "+"); got != want {
			t.Errorf("%s %s takes %q, want %q", method, path, got, want)
		}
	})
}

// TestContractHeadersAreStrings: a header declared as a number makes the
// generated client lose the whole answer when it holds a date.
func TestContractHeadersAreStrings(t *testing.T) {
	t.Parallel()
	throttled := 0
	operations(loadContract(t), func(path, method string, op *openapi3.Operation) {
		for status, response := range op.Responses.Map() {
			for name, header := range response.Value.Headers {
				if !header.Value.Schema.Value.Type.Is("string") {
					t.Errorf("%s %s %s: header %s is not a string", method, path, status, name)
				}
			}
			if status == "429" {
				throttled++
				if response.Value.Headers["Retry-After"] == nil {
					t.Errorf("%s %s 429 names no Retry-After", method, path)
				}
			}
		}
	})
	if throttled == 0 {
		t.Error("no operation answers 429")
	}
}

// TestContractMarksItsAdditions: what no live service has must be told apart
// from the wire, and nothing else may be marked.
func TestContractMarksItsAdditions(t *testing.T) {
	t.Parallel()
	doc := loadContract(t)
	want := []string{
		"header IdempotentReplayed", "header PreferenceApplied", "operation getUsage", "parameter Prefer",
		"path /v1/usage", "property Event.error_code", "property Event.failure_class",
		"property Operation.error_code", "property Operation.failure_class", "schema Usage", "schema UsageAccount",
	}
	var got []string
	mark := func(what string, extensions map[string]any) {
		if value, there := extensions["x-memwrite"]; there {
			if value != true {
				t.Errorf("%s: x-memwrite is %v, want true", what, value)
			}
			got = append(got, what)
		}
	}
	for path, item := range doc.Paths.Map() {
		mark("path "+path, item.Extensions)
	}
	operations(doc, func(_, _ string, op *openapi3.Operation) { mark("operation "+op.OperationID, op.Extensions) })
	for name, header := range doc.Components.Headers {
		mark("header "+name, header.Value.Extensions)
	}
	for name, parameter := range doc.Components.Parameters {
		mark("parameter "+name, parameter.Value.Extensions)
	}
	for name, schema := range doc.Components.Schemas {
		mark("schema "+name, schema.Value.Extensions)
		for property, inner := range schema.Value.Properties {
			if inner.Ref == "" {
				mark("property "+name+"."+property, inner.Value.Extensions)
			}
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("marked as ours:\n got %q\nwant %q", got, want)
	}
}

// TestContractKeepsBytes: a value that takes part in a replay key or in a
// fingerprint must not be parsed and printed anew by generated code.
func TestContractKeepsBytes(t *testing.T) {
	t.Parallel()
	for name, schema := range loadContract(t).Components.Schemas {
		for property, inner := range schema.Value.Properties {
			switch property {
			case "occurred_at", "event_date":
				if inner.Value.Format != "" {
					t.Errorf("%s.%s has the format %q", name, property, inner.Value.Format)
				}
			case "metadata":
				if inner.Value.Extensions["x-go-type"] != "json.RawMessage" {
					t.Errorf("%s.%s is not raw JSON", name, property)
				}
			}
		}
	}
}
