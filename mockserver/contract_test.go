package mockserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"github.com/memwrite/memwrite-go/mockserver"
)

// caller talks plain HTTP to a server and holds every answer against the
// contract.
type caller struct {
	t      *testing.T
	srv    *mockserver.Server
	router routers.Router
}

type reply struct {
	status int
	header http.Header
	body   []byte
}

func newCaller(t *testing.T, srv *mockserver.Server) *caller {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile("../openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	doc.Servers = nil // it finds a path by itself then; below "/" it finds none of a whole URL
	router, err := legacy.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	return &caller{t, srv, router}
}

// do sends a request with the right key for its path, unless a header says
// otherwise, over a connection of its own.
func (c *caller) do(method, path, body string, header ...string) reply {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.srv.URL+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	fish := strings.HasPrefix(path, "/v1/memories") || strings.HasPrefix(path, "/v1/events") || strings.HasPrefix(path, "/v1/operations") ||
		strings.HasPrefix(path, "/v1/health") || strings.HasPrefix(path, "/v1/usage")
	if fish {
		req.Header.Set("Authorization", "Bearer "+c.srv.FishMemKey)
	} else {
		req.Header.Set("X-API-Key", c.srv.MemorySyncKey)
		req.Header.Set("X-End-User-ID", "acme")
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i+1] == "" {
			req.Header.Del(header[i])
			continue
		}
		req.Header.Set(header[i], header[i+1])
	}
	transport := &http.Transport{DisableKeepAlives: true}
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	got := reply{res.StatusCode, res.Header, out}
	c.check(req, got)
	return got
}

// check holds an answer against openapi.yaml. A path that the contract does not
// have is not checked.
func (c *caller) check(req *http.Request, got reply) {
	c.t.Helper()
	if got.header.Get("X-Request-ID") == "" {
		c.t.Errorf("%s %s: no X-Request-ID", req.Method, req.URL.Path)
	}
	if c.router == nil {
		return
	}
	if err := outside(c.router, req, got); err != nil {
		c.t.Errorf("%s %s answered %d outside the contract: %v\n%s", req.Method, req.URL.Path, got.status, err, got.body)
	}
}

// outside is how an answer breaks the contract.
func outside(router routers.Router, req *http.Request, got reply) error {
	route, params, err := router.FindRoute(req)
	if err != nil {
		return nil
	}
	return openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route},
		Status:                 got.status, Header: got.header, Body: io.NopCloser(bytes.NewReader(got.body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
}

// The check itself: it sees an answer that is not the contract's.
func TestAnAnswerOutsideTheContractIsSeen(t *testing.T) {
	t.Parallel()
	c := newCaller(t, mockserver.Run(t))
	json := http.Header{"Content-Type": {"application/json"}}
	for name, tc := range map[string]struct {
		path string
		got  reply
		fine bool
	}{
		"a field is missing":   {"/v1/usage", reply{200, json, []byte(`{"credits":{}}`)}, false},
		"a field is no number": {"/memory/1", reply{200, json, []byte(`{"id":"1","text":"t"}`)}, false},
		"no JSON":              {"/memory/1", reply{200, json, []byte(`<html>`)}, false},
		"an error is flat":     {"/v1/events/x", reply{404, json, []byte(`{"detail":"no"}`)}, false},
		"a memory":             {"/memory/1", reply{200, json, []byte(`{"id":1,"text":"t"}`)}, true},
	} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", c.srv.URL+tc.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := outside(c.router, req, tc.got); (err == nil) != tc.fine {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// want checks the status and the code, wherever the wire's shape has it.
func (c *caller) want(got reply, status int, code string) reply {
	c.t.Helper()
	if got.status != status || (code != "" && got.code() != code) {
		c.t.Errorf("got %d %q, want %d %q\n%s", got.status, got.code(), status, code, got.body)
	}
	return got
}

func (r reply) fields() map[string]any {
	var m map[string]any
	_ = json.Unmarshal(r.body, &m)
	return m
}

func (r reply) code() string {
	m := r.fields()
	if s, ok := m["code"].(string); ok {
		return s
	}
	for _, field := range []string{"error", "detail"} {
		switch v := m[field].(type) {
		case string:
			return v
		case map[string]any:
			if s, ok := v["code"].(string); ok {
				return s
			}
			if s, ok := v["error"].(string); ok {
				return s
			}
		}
	}
	return ""
}

// ended waits for an event to end, in long polls.
func (c *caller) ended(id string) map[string]any {
	c.t.Helper()
	for {
		got := c.want(c.do("GET", "/v1/events/"+id, "", "Prefer", "wait=5"), 200, "").fields()
		if got["status"] == "SUCCEEDED" || got["status"] == "FAILED" || c.t.Failed() {
			return got
		}
	}
}
