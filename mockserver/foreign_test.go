package mockserver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/mockserver"
)

// A key of another workspace walks every route with this workspace's ids,
// cursor, key and reference: nothing is read, changed or told.
func TestAForeignKeyFindsNothing(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	const secret = "Tamarind"
	added := c.do("POST", "/memory/add", `{"text":"My team adores Tamarind soup.","client_ref":"r"}`).fields()
	number := fmt.Sprint(int64(added["id"].(float64)))
	id := c.do("POST", "/v1/memories", `{"content":"I adore Tamarind soup","user_id":"acme"}`, "Idempotency-Key", "k").fields()["event_id"].(string)
	memory := c.ended(id)["results"].([]any)[0].(map[string]any)["id"].(string)
	c.do("POST", "/v1/memories", `{"content":"I adore Tamarind jam","user_id":"acme","infer":false}`)
	cursor := c.do("GET", "/v1/memories?user_id=acme&limit=1", "").fields()["next_cursor"].(string)
	c.ended(c.do("POST", "/v1/memories", `{"content":"I adore Tamarind tea","user_id":"acme"}`, "Idempotency-Key", "k2").fields()["event_id"].(string))
	events := c.do("GET", "/v1/events?limit=1", "").fields()["next_cursor"].(string)
	c.want(c.do("POST", "/v1/memory/add_turn", `{"tenant_id":"default","user_id":"acme","text":"I adore Tamarind cake.","speaker":"s","occurred_at":"o"}`), 201, "")
	for c.do("GET", "/v1/memory/default/acme/list", "").fields()["total"] == 0.0 {
	}
	before, err := srv.Snapshot()
	if err != nil {
		t.Fatal(err)
	}

	ms := []string{"X-API-Key", srv.NewKey("other", "memorysync", "memory:*", "projects:read")}
	fm := []string{"Authorization", "Bearer " + srv.NewKey("other", "fishmem", "memory:read", "memory:write", "operations:read")}
	walked := map[string]bool{"memorySyncHealth": true} // takes no key
	for _, tc := range []struct {
		method, path, body string
		status             int
		header             []string
	}{
		{"POST", "/memory/add", `{"text":"My team adores Tamarind soup.","client_ref":"r"}`, 403, append([]string{"X-Tenant-ID", "default2"}, ms...)},
		{"POST", "/memory/bulk-add", `{"items":[{"text":"My team adores Tamarind soup."}]}`, 403, append([]string{"X-Tenant-ID", "default2"}, ms...)},
		{"POST", "/v1/memory/add_turn", `{"tenant_id":"default2","user_id":"acme","text":"I adore Tamarind cake.","speaker":"s","occurred_at":"o"}`, 403, ms},
		{"GET", "/v1/memory/default2/acme/list", "", 403, ms},
		{"POST", "/v1/memories", `{"content":"I adore Tamarind soup","user_id":"acme"}`, 401, append([]string{"Idempotency-Key", "k"}, "Authorization", "Bearer "+ms[1])},
		{"GET", "/memory/" + number, "", 404, ms},
		{"DELETE", "/memory/forget", `{"memory_ids":[` + number + `]}`, 200, ms},
		{"POST", "/memory/query", `{"query":"soup"}`, 200, ms},
		{"POST", "/v1/memory/query", `{"tenant_id":"other","user_id":"acme","prompt":"soup"}`, 200, ms},
		{"POST", "/v1/memory/query", `{"tenant_id":"default","user_id":"acme","prompt":"soup"}`, 200, ms},
		{"POST", "/v1/memory/recall", `{"tenant_id":"other","user_id":"acme","prompt":"soup"}`, 200, ms},
		{"GET", "/v1/memory/other/acme/list", "", 200, ms},
		{"GET", "/org/projects", "", 200, ms},
		{"GET", "/memory/" + number, "", 403, append([]string{"X-Tenant-ID", "acme"}, ms...)},
		{"GET", "/v1/memories/" + memory, "", 404, fm},
		{"DELETE", "/v1/memories/" + memory, "", 404, fm},
		{"DELETE", "/v1/memories/" + memory, "", 404, append([]string{"Idempotency-Key", "k"}, fm...)},
		{"DELETE", "/v1/memories?user_id=acme", "", 200, fm},
		{"GET", "/v1/memories?user_id=acme", "", 200, fm},
		{"GET", "/v1/memories?user_id=acme&cursor=" + url.QueryEscape(cursor), "", 200, fm},
		{"POST", "/v1/memories/search", `{"query":"soup","user_id":"acme"}`, 200, fm},
		{"GET", "/v1/events", "", 200, fm},
		{"GET", "/v1/events?cursor=" + url.QueryEscape(cursor), "", 200, fm},
		{"GET", "/v1/events?cursor=" + url.QueryEscape(events), "", 200, fm},
		{"GET", "/v1/events/" + id, "", 404, fm},
		{"GET", "/v1/operations/" + id, "", 404, fm},
		{"POST", "/v1/operations/" + id + "/retry", "", 404, fm},
		{"GET", "/v1/health", "", 200, fm},
		{"GET", "/v1/usage", "", 200, fm},
	} {
		got := c.want(c.do(tc.method, tc.path, tc.body, tc.header...), tc.status, "")
		walked[routed(t, c.router, tc.method, srv.URL+tc.path)] = true
		for _, told := range []string{secret, memory, id, number + ","} {
			if bytes.Contains(got.body, []byte(told)) {
				t.Errorf("%s %s told a foreign key %q: %s", tc.method, tc.path, told, got.body)
			}
		}
	}
	everyOperation(t, walked)
	after, err := srv.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if a, b := books(t, before), books(t, after); a != b {
		t.Errorf("a foreign key changed the books:\n%s\n%s", a, b)
	}
	// The same names in another workspace are other intents.
	c.want(c.do("POST", "/memory/add", `{"text":"My team adores Tamarind soup.","client_ref":"r"}`, ms...), 201, "")
	got := c.want(c.do("POST", "/v1/memories", `{"content":"something else","user_id":"z"}`, append([]string{"Idempotency-Key", "k"}, fm...)...), 202, "")
	if got.fields()["event_id"] == id {
		t.Error("two workspaces share a key")
	}
}

// books is a snapshot without what any call may add: workspaces and the time.
func books(t *testing.T, snapshot []byte) string {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal(snapshot, &m); err != nil {
		t.Fatal(err)
	}
	return string(m["tasks"]) + string(m["records"]) + string(m["entries"]) + string(m["transitions"]) + string(m["held"])
}

func TestAttacksAreRefusedAndOthersUnharmed(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.ReadTimeout(3*time.Second))
	c := newCaller(t, srv)
	address := strings.TrimPrefix(srv.URL, "http://")
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	slow := dial()
	_, _ = io.WriteString(slow, "POST /memory/add HTTP/1.1\r\nHost: x\r\nX-API-Key: ")
	slowBody := dial()
	_, _ = fmt.Fprintf(slowBody, "POST /memory/add HTTP/1.1\r\nHost: x\r\nX-API-Key: %s\r\nX-End-User-ID: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", srv.MemorySyncKey)
	huge := dial()
	go func() {
		_, _ = io.WriteString(huge, "GET /health HTTP/1.1\r\nHost: x\r\nX-A: "+strings.Repeat("a", 1<<20)+"\r\n\r\n")
	}()
	c.want(c.do("POST", "/memory/add", note), 201, "")
	status := make([]byte, 12)
	if _, err := io.ReadFull(huge, status); err == nil && string(status) != "HTTP/1.1 431" {
		t.Errorf("a megabyte of headers: %s", status)
	}
	for name, conn := range map[string]net.Conn{"headers": slow, "body": slowBody} {
		_ = conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
		answer, err := io.ReadAll(conn)
		if ne, ok := err.(net.Error); ok && ne.Timeout() {
			t.Errorf("slow %s were not cut off", name)
		}
		if bytes.HasPrefix(answer, []byte("HTTP/1.1 2")) {
			t.Errorf("slow %s: %s", name, answer)
		}
	}
	// Large bodies go to a server that gives them time to come.
	c.want(c.do("POST", "/memory/add", note), 200, "")
	srv.StoredOnce(t, "note-0001")
	srv = mockserver.Run(t, mockserver.ReadTimeout(5*time.Minute))
	c = newCaller(t, srv)
	c.want(c.do("POST", "/memory/add", note), 201, "")
	million := `{"messages":[` + strings.Repeat("1,", 999_999) + `1],"user_id":"sam"}`
	c.want(c.do("POST", "/v1/memories", million, "Idempotency-Key", "k"), 400, "INVALID_REQUEST")
	c.want(c.do("POST", "/memory/bulk-add", `{"items":[`+strings.Repeat("1,", 400_000)+`1]}`), 422, "VALIDATION_ERROR")
	deep := `{"a":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`
	for path, want := range map[string]int{"/memory/add": 422, "/memory/query": 422, "/v1/memory/add_turn": 422, "/v1/memories": 400, "/v1/memories/search": 400} {
		c.want(c.do("POST", path, deep, "Idempotency-Key", "k"), want, "")
	}
	c.want(c.do("DELETE", "/memory/forget", `{"memory_ids":[`+strings.Repeat("1,", 400_000)+`1]}`), 422, "VALIDATION_ERROR")
	c.want(c.do("POST", "/v1/memories/search", `{"query":"x","user_id":"a","filters":{"field":"id","operator":"in","value":[`+strings.Repeat("1,", 400_000)+`1]}}`), 400, "INVALID_FILTER")
	c.want(c.do("GET", "/health", ""), 200, "")
	// Others were not harmed: what was written meanwhile is there, once.
	c.want(c.do("POST", "/memory/add", note), 200, "")
	srv.StoredOnce(t, "note-0001")
}

func TestControlOverHTTP(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	control := func(method, path, body string, header ...string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(header); i += 2 {
			if header[i] == "Host" {
				req.Host = header[i+1]
			}
			req.Header.Set(header[i], header[i+1])
		}
		res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		out, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(out)
	}
	c := newCaller(t, srv)
	before := srv.Now()
	if status, _ := control("POST", "/_control/clock", `{"advance":"720h","freeze":true}`); status != 200 || srv.Now().Sub(before) < 720*time.Hour {
		t.Errorf("the clock: %d, %v", status, srv.Now().Sub(before))
	}
	if status, _ := control("POST", "/_control/clock", `{"thaw":true}`); status != 200 {
		t.Errorf("thaw: %d", status)
	}
	if status, body := control("POST", "/_control/faults", `{"kind":"status","code":503}`); status != 201 || !strings.Contains(body, `"number":1`) {
		t.Errorf("arm: %d %s", status, body)
	}
	c.want(c.do("GET", "/health", ""), 503, "")
	if _, body := control("GET", "/_control/faults", ""); !strings.Contains(body, `"fired":1`) {
		t.Errorf("faults: %s", body)
	}
	for _, wrong := range []string{`{"kind":"gremlin"}`, `{"kind":"status","keys":"k"}`, `{"kind":"status"} {}`, `[]`, ``} {
		if status, body := control("POST", "/_control/faults", wrong); status != 400 || !strings.Contains(body, "error") {
			t.Errorf("%s: %d %s", wrong, status, body)
		}
	}
	c.do("POST", "/memory/add", note)
	_, snapshot := control("GET", "/_control/state", "")
	for _, path := range []string{"records", "tasks", "ledger", "journal"} {
		if status, body := control("GET", "/_control/"+path, ""); status != 200 || len(body) < 10 || strings.Contains(body, srv.MemorySyncKey) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if status, _ := control("POST", "/_control/reset", ""); status != 204 || len(srv.Records()) != 0 || len(srv.Journal()) != 0 {
		t.Error("reset left something behind")
	}
	if status, body := control("PUT", "/_control/state", snapshot); status != 204 || len(srv.Records()) != 1 {
		t.Errorf("restore: %d %s", status, body)
	}
	c.want(c.do("POST", "/memory/add", note), 200, "")
	c.want(c.do("POST", "/memory/add", `{"text":"We use Postgres 16."}`), 201, "")
	if l := srv.Ledger(); !l.Balanced || l.Settled != 2 {
		t.Errorf("the ledger after a restore: %+v", l)
	}
	for name, header := range map[string][]string{
		"a page of a browser": {"Origin", "https://evil.example"},
		"a rebound name":      {"Host", "evil.example"},
		"a wrong token":       {"X-Control-Token", "nope"},
	} {
		if status, _ := control("POST", "/_control/reset", "", header...); status != 403 {
			t.Errorf("%s: %d", name, status)
		}
	}
	if status, _ := control("POST", "/_control/reset", "", "Host", "server.example", "X-Control-Token", srv.ControlToken); status != 204 {
		t.Errorf("the token: %d", status)
	}
}
