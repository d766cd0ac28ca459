package mockserver_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/memwrite/memwrite-go/mockserver"
)

// ask sends a request of any bytes and gives the answer.
func ask(t *testing.T, srv *mockserver.Server, method, path, key string, body []byte) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, srv.URL+path, strings.NewReader(string(body)))
	if err != nil {
		t.Skip()
	}
	if strings.HasPrefix(path, "/memory") || strings.HasPrefix(path, "/v1/memory/") {
		req.Header.Set("X-API-Key", srv.MemorySyncKey)
		req.Header.Set("X-End-User-ID", "sam")
	} else {
		req.Header.Set("Authorization", "Bearer "+srv.FishMemKey)
		req.Header["Idempotency-Key"] = []string{key}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Control-Token", srv.ControlToken)
	res, err := srv.RoundTripper().RoundTrip(req)
	if err != nil {
		t.Fatalf("%s %s %q: %v", method, path, body, err)
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, out
}

// Whatever a caller sends to any route: no handler breaks, and the answer is a
// JSON document.
func FuzzRequests(f *testing.F) {
	routes := []string{
		"POST /memory/add", "POST /memory/bulk-add", "POST /v1/memory/add_turn", "DELETE /memory/forget", "POST /memory/query", "POST /v1/memory/query",
		"POST /v1/memory/recall", "POST /v1/memories", "POST /v1/memories/search", "DELETE /v1/memories", "GET /v1/events", "GET /v1/memories",
	}
	for i := range routes {
		f.Add(uint8(i), "", "k", []byte(`{"text":"My team ships releases every Thursday.","client_ref":"r","content":"x","user_id":"sam","tenant_id":"default","query":"ships","memory_ids":[1]}`))
	}
	f.Add(uint8(10), "limit=1&cursor=AA==&status=FAILED", "k", []byte{})
	f.Add(uint8(11), "user_id=sam&limit=0", "", []byte(`{}`))
	f.Add(uint8(7), "", " ", []byte(`{"messages":[{"role":"user","content":"x"}],"user_id":" ","metadata":{"a":12345678901234567890}}`))
	f.Add(uint8(0), "", "", []byte(`{"text":"x","ttl_minutes":1e30,"importance":null,"tags":["",1]}`))
	srv, err := mockserver.Start(mockserver.InProcess())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(srv.Close)
	f.Fuzz(func(t *testing.T, route uint8, query, key string, body []byte) {
		method, path, _ := strings.Cut(routes[int(route)%len(routes)], " ")
		if query != "" {
			path += "?" + query
		}
		status, out := ask(t, srv, method, path, key, body)
		if status == http.StatusInternalServerError {
			t.Fatalf("%s %s %q %q: %s", method, path, key, body, out)
		}
		if !json.Valid(out) {
			t.Fatalf("%s %s %q: %d %q is no JSON", method, path, body, status, out)
		}
	})
}

// Whatever a test in another language sends to the control API, the server goes
// on and answers.
func FuzzControl(f *testing.F) {
	routes := []string{"POST /_control/clock", "POST /_control/faults", "PUT /_control/state", "PUT /_control/webhooks", "DELETE /_control/faults/1", "POST /_control/faults/1/release", "GET /_control/ledger"}
	f.Add(uint8(0), "", []byte(`{"advance":"1h"}`))
	f.Add(uint8(0), "", []byte(`{"freeze":true,"thaw":true}`))
	f.Add(uint8(1), "", []byte(`{"kind":"status","code":503,"retry_after":"9223372037","times":-1,"key":"never"}`))
	f.Add(uint8(1), "", []byte(`{"kind":"truncate","bytes":-5,"key":"never"}`))
	f.Add(uint8(2), "", []byte(`{"version":1,"tasks":[{}]}`))
	f.Add(uint8(3), "", []byte(`{"url":"","secret":"s"}`))
	f.Add(uint8(6), "key=k", []byte{})
	f.Fuzz(func(t *testing.T, route uint8, query string, body []byte) {
		srv := mockserver.Run(t, mockserver.InProcess())
		method, path, _ := strings.Cut(routes[int(route)%len(routes)], " ")
		if query != "" {
			path += "?" + query
		}
		if status, out := ask(t, srv, method, path, "", body); status >= 500 {
			t.Fatalf("%s %s %q: %d %s", method, path, body, status, out)
		}
		ask(t, srv, "DELETE", "/_control/faults", "", nil)
		if status, out := ask(t, srv, "GET", "/v1/health", "", nil); status != 200 {
			t.Fatalf("after %s %s %q the server answers %d %s", method, path, body, status, out)
		}
	})
}
