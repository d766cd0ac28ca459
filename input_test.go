package memwrite_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	memwrite "github.com/memwrite/memwrite-go"
)

func TestBadInputNeverLeaves(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) { respond(w, 201, storedBody) })
	c := srv.client(t)
	only := func(o memwrite.Option) *memwrite.Client {
		c, err := memwrite.New(o)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	noFish, noMem := only(memwrite.WithMemorySync(srv.URL, msKey)), only(memwrite.WithFishMem(srv.URL, fmKey))
	add := func(change func(*memwrite.AddRequest)) func(context.Context) error {
		return func(ctx context.Context) error {
			r := theNote()
			change(&r)
			_, err := c.Add(ctx, r)
			return err
		}
	}
	infer := func(change func(*memwrite.InferRequest)) func(context.Context) error {
		return func(ctx context.Context) error {
			r := theInferred()
			change(&r)
			_, err := c.AddAsync(ctx, r)
			return err
		}
	}
	for _, tc := range []struct {
		name  string
		call  func(context.Context) error
		field string
		says  string
	}{
		{"empty text", add(func(r *memwrite.AddRequest) { r.Text = " \n" }), "Text", "empty"},
		{"text that is not UTF-8", add(func(r *memwrite.AddRequest) { r.Text = "a\xff" }), "Text", "UTF-8"},
		{"client_ref of 129 characters", add(func(r *memwrite.AddRequest) { r.Ref = memwrite.RefFromString(strings.Repeat("é", 129)) }), "Ref", "limit is 128"},
		{"missing end user", add(func(r *memwrite.AddRequest) { r.EndUserID = "" }), "EndUserID", "missing"},
		{"NUL in a header value", add(func(r *memwrite.AddRequest) { r.EndUserID = "a\x00b" }), "EndUserID", "0x0"},
		{"CR in a header value", add(func(r *memwrite.AddRequest) { r.EndUserID = "a\r\nb" }), "EndUserID", "0xd"},
		{"blank ref", add(func(r *memwrite.AddRequest) { r.Ref = memwrite.RefFromString(" ") }), "Ref", "blank"},
		{"broken ref", add(func(r *memwrite.AddRequest) { r.Ref = memwrite.NewRef("", "1") }), "Ref", "kind"},
		{"metadata that is no object", add(func(r *memwrite.AddRequest) { r.Metadata = []byte(`[1]`) }), "Metadata", "object"},
		{"importance above one", add(func(r *memwrite.AddRequest) { v := 1.5; r.Importance = &v }), "Importance", "0 to 1"},
		{"write without a key", infer(func(r *memwrite.InferRequest) { r.Key = memwrite.Ref{} }), "Key", "required"},
		{"key of 201 characters", infer(func(r *memwrite.InferRequest) { r.Key = memwrite.RefFromString(strings.Repeat("k", 201)) }), "Key", "limit is 200"},
		{"key with a space", infer(func(r *memwrite.InferRequest) { r.Key = memwrite.RefFromString("a b") }), "Key", "visible ASCII"},
		{"filters that are no object", func(ctx context.Context) error {
			_, err := c.Search(ctx, memwrite.SearchRequest{Scope: memwrite.Scope{UserID: "sam"}, Query: "tea", Filters: []byte(`[1]`)})
			return err
		}, "Filters", "object"},
		{"no scope", infer(func(r *memwrite.InferRequest) { r.Scope = memwrite.Scope{} }), "Scope", "at least one"},
		{"501 messages", infer(func(r *memwrite.InferRequest) { r.Content, r.Messages = "", make([]memwrite.Message, 501) }), "Messages", "limit is 500"},
		{"content beside messages", infer(func(r *memwrite.InferRequest) { r.Messages = make([]memwrite.Message, 1) }), "Content", "beside"},
		{"turn without speaker", func(ctx context.Context) error {
			r := theTurn()
			r.Speaker = ""
			_, err := c.AddTurn(ctx, r)
			return err
		}, "Speaker", "missing"},
		{"turn without time", func(ctx context.Context) error {
			r := theTurn()
			r.OccurredAt = ""
			_, err := c.AddTurn(ctx, r)
			return err
		}, "OccurredAt", "missing"},
		{"FishMem not configured", func(ctx context.Context) error { _, err := noFish.AddAsync(ctx, theInferred()); return err }, "service", "WithFishMem"},
		{"MemorySync not configured", func(ctx context.Context) error { _, err := noMem.Add(ctx, theNote()); return err }, "service", "WithMemorySync"},
		{"base URL with a query", func(context.Context) error {
			_, err := memwrite.New(memwrite.WithMemorySync(srv.URL+"?a=b", msKey))
			return err
		}, "WithMemorySync", "query"},
		{"base URL without a scheme", func(context.Context) error {
			_, err := memwrite.New(memwrite.WithFishMem("localhost:80", fmKey))
			return err
		}, "WithFishMem", "scheme"},
		{"base URL that is an address", func(context.Context) error {
			_, err := memwrite.New(memwrite.WithFishMem("127.0.0.1:8080", fmKey))
			return err
		}, "WithFishMem", "http:// or https://"},
		{"base URL that is a name", func(context.Context) error {
			_, err := memwrite.New(memwrite.WithFishMem("memory.example.com/v1", fmKey))
			return err
		}, "WithFishMem", "http:// or https://"},
		{"base URL of another scheme", func(context.Context) error {
			_, err := memwrite.New(memwrite.WithFishMem("ftp://memory.example.com", fmKey))
			return err
		}, "WithFishMem", "http:// or https://"},
		{"key with a NUL", func(context.Context) error {
			_, err := memwrite.New(memwrite.WithFishMem(srv.URL, "fm_\x00secretpart"))
			return err
		}, "WithFishMem", "0x0"},
		{"no service at all", func(context.Context) error { _, err := memwrite.New(); return err }, "service", "none"},
	} {
		err := tc.call(t.Context())
		var e *memwrite.Error
		if !errors.Is(err, memwrite.ErrInvalidInput) || !errors.As(err, &e) || e.Field != tc.field || !strings.Contains(e.Message, tc.says) {
			t.Errorf("%s: %v", tc.name, err)
		} else if strings.Contains(err.Error(), "secretpart") || e.Tries != 0 {
			t.Errorf("%s tells too much or was tried: %v", tc.name, err)
		}
		want := memwrite.DeadLetter
		if e != nil && (e.Op == "New" || e.Field == "service") { // no message's fault
			want = memwrite.Hold
		}
		if v := memwrite.VerdictOf(err); v.Action != want {
			t.Errorf("%s: verdict %v", tc.name, v)
		}
	}
	if _, err := c.AddAsync(t.Context(), memwrite.InferRequest{Key: memwrite.NewRef("n", "1"), Scope: memwrite.Scope{UserID: "u"}, Content: strings.Repeat("x", 250_000)}); !errors.Is(err, memwrite.ErrTooLarge) {
		t.Error(err)
	}
	if n := len(srv.requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}
