package memwrite_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/memwrite/memwrite-go"
)

// always is a server that answers everything alike.
type always struct {
	status int
	header string
	body   []byte
}

func (a always) RoundTrip(req *http.Request) (*http.Response, error) {
	h := http.Header{"Content-Type": {"application/json"}}
	if a.header != "" {
		h["Retry-After"] = []string{a.header}
	}
	return &http.Response{StatusCode: a.status, Header: h, Body: io.NopCloser(bytes.NewReader(a.body)), ContentLength: int64(len(a.body)), Request: req}, nil
}

// Whatever a server answers, no call reports a success that the answer does not
// hold, and no error holds a key or the text that was sent.
func FuzzAnswers(f *testing.F) {
	for _, s := range []string{
		`{"id":7,"text":"x"}`, `{"memory_id":7}`, `{"status":"skipped","reason":"already_ingested","memory_ids":[1]}`, `{"status":"ok"}`,
		`{"event_id":"e","status":"PENDING"}`, `{"results":[{"id":"m","memory":"x","event":"ADD"}]}`, `{"results":null}`, `{"processing_status":"distilling","status":"processing"}`,
		`{"processing_status":"failed"}`, `{"id":"e","status":"SUCCEEDED","results":[]}`, `{"deleted":1}`, `{}`, `null`, `[]`, `"x"`, `<html>`, ``, `{"id":9e999}`, `{"id":"7"}`,
	} {
		f.Add(200, "", []byte(s))
		f.Add(429, "1", []byte(s))
		f.Add(409, "9223372037", []byte(s))
	}
	const text, key = "the words of a memory nobody may repeat", "a-key-nobody-may-repeat"
	f.Fuzz(func(t *testing.T, status int, header string, body []byte) {
		if status < 200 || status > 599 || strings.ContainsAny(header, "\r\n\x00") || bytes.Contains(body, []byte("nobody may repeat")) {
			return
		}
		c, err := memwrite.New(memwrite.WithMemorySync("http://a.test", key), memwrite.WithFishMem("http://b.test", key), memwrite.WithTenant("t"),
			memwrite.WithHTTPClient(&http.Client{Transport: always{status, header, body}}), memwrite.WithRetryPolicy(memwrite.RetryPolicy{MaxTries: 1, NoGate: true, NoPause: true}))
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		judge := func(op string, ok bool, err error) {
			t.Helper()
			var e *memwrite.Error
			switch {
			case err == nil && (!ok || status > 299):
				t.Fatalf("%s takes %d %q for a success", op, status, body)
			case err != nil && !errors.As(err, &e):
				t.Fatalf("%s fails with %T", op, err)
			case e != nil && (e.RetryAfter < 0 || strings.Contains(e.Error()+e.Snippet+string(e.Details), "nobody may repeat")):
				t.Fatalf("%s: %v", op, e)
			case e != nil && memwrite.VerdictOf(err).Action == memwrite.Ack:
				t.Fatalf("%s: %v is acknowledged", op, e)
			}
		}
		infer := memwrite.InferRequest{Key: memwrite.NewRef("note", "1"), Scope: memwrite.Scope{UserID: "u"}, Content: text}
		add, err := c.Add(ctx, memwrite.AddRequest{Text: text, EndUserID: "u", Ref: memwrite.NewRef("note", "1")})
		judge("Add", add != nil && (add.Outcome != memwrite.Stored || add.Memory != nil && len(add.MemoryIDs) == 1), err)
		receipt, err := c.AddAsync(ctx, infer)
		judge("AddAsync", receipt != nil && receipt.EventID != "" && receipt.Key == "note-1", err)
		verbatim, err := c.AddVerbatim(ctx, infer)
		judge("AddVerbatim", verbatim != nil && bytes.Contains(body, []byte("results")), err)
		turn, err := c.AddTurn(ctx, memwrite.TurnRequest{UserID: "u", Text: text, Speaker: "s", OccurredAt: "2026-08-01T09:00:00Z"})
		judge("AddTurn", turn != nil && turn.ProcessingStatus != memwrite.TurnSkippedByQuota && turn.ProcessingStatus != memwrite.TurnFailed, err)
		event, err := c.Event(ctx, "e")
		judge("Event", event != nil && event.ID != "" && event.Status != "", err)
		redriven, err := c.Redrive(ctx, "e")
		judge("Redrive", redriven != nil && redriven.ID != "", err)
		_, err = c.Forget(ctx, memwrite.ForgetRequest{EndUserID: "u", MemoryIDs: []int64{1}})
		judge("Forget", bytes.Contains(body, []byte("deleted")), err)
		n := 0
		for _, err := range c.Events(ctx, memwrite.EventFilter{}) {
			judge("Events", bytes.Contains(body, []byte("results")), err)
			if n++; n > 1000 {
				break
			}
		}
	})
}
