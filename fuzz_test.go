package memwrite

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/internal/transport"
)

// Whatever a server sends, an answer that is no JSON document is no success,
// and what is kept of it is bounded.
func FuzzErrorBody(f *testing.F) {
	for _, s := range []string{
		`{"error":{"code":"C","message":"m","details":[1]},"request_id":"r"}`, `{"error":"C","message":"m"}`,
		`{"detail":"d"}`, `{"detail":{"error":"limit_exceeded"}}`, `{"detail":[{"msg":"m"}]}`, `"x"`, `[]`, `null`, ``,
		`{"code":"IDEMPOTENCY_INCOMPLETE","mess`, `<html>`, `{"processing_status":"failed"}`, `{"a":{"b":{"c":[[{}]]}}}`, "{\"code\":\"\xff\"}",
		`{"error":{"retry_after":1e309}}`, `]`, `{]`,
	} {
		f.Add(503, []byte(s))
		f.Add(200, []byte(s))
		f.Add(429, []byte(s))
	}
	svc := &service{key: "secret-key", sched: sched.Real()}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		a := &transport.Answer{Status: status, Header: http.Header{}, Body: body}
		d := svc.classify(a, nil, nil)
		if d.Class == transport.Success && (status < 200 || status > 299 || !json.Valid(body)) {
			t.Fatalf("status %d body %q is a success", status, body)
		}
		if d.Hint < 0 || d.Hint > 24*time.Hour {
			t.Fatalf("hint %v", d.Hint)
		}
		var got addAnswer
		shaped := svc.classify(a, decoded(&got, "lacks", func() bool { return got.ID != nil || got.MemoryID != nil || got.Status != "" }), nil)
		if shaped.Class == transport.Success && d.Class != transport.Success {
			t.Fatalf("status %d body %q is a success by its shape alone", status, body)
		}
		if d.Class == transport.Success && shaped.Class != transport.Success && shaped.Class != transport.Malformed {
			t.Fatalf("status %d body %q: %v", status, body, shaped)
		}
		var e Error
		svc.fill(&e, request{texts: []string{"the text of a memory"}}, a)
		if len(e.Message) > maxMessage || len(e.Snippet) > maxSnippet || len(e.Details) > maxDetails || len(e.Code) > 100 {
			t.Fatalf("%d %d %d %d", len(e.Message), len(e.Snippet), len(e.Details), len(e.Code))
		}
		if strings.Contains(e.Error()+e.Snippet+string(e.Details), "secret-key") {
			t.Fatal(e.Error())
		}
		if strings.ContainsAny(e.Error(), "\r\n\x00") || !utf8.ValidString(e.Message) {
			t.Fatalf("%q", e.Error())
		}
	})
}

// An event of any shape decodes or fails; it never ends a wait by mistake.
func FuzzEvent(f *testing.F) {
	for _, s := range []string{
		`{"id":"task_1","status":"SUCCEEDED","results":[{"id":"m","memory":"x","event":"ADD"}],"write_summary":{"outcome":"STORED"}}`,
		`{"id":"task_1","status":"ZZ"}`, `{"id":null,"status":null}`, `{"id":"task_1","status":"FAILED","results":null,"error":null}`,
		`{"id":"task_1","status":1}`, `[]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var ev Event
		if json.Unmarshal(body, &ev) != nil {
			return
		}
		if ev.Status.Terminal() && ev.Status != Succeeded && ev.Status != Failed {
			t.Fatal(ev.Status)
		}
		if ev.NoMemory() && len(ev.Results) > 0 {
			t.Fatal(ev)
		}
		again, err := json.Marshal(ev)
		if err != nil {
			t.Fatal(err)
		}
		var same Event
		if err := json.Unmarshal(again, &same); err != nil || same.Status != ev.Status {
			t.Fatal(err)
		}
	})
}
