package memwrite_test

import (
	"errors"
	"net/http"
	"testing"

	memwrite "github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/mockserver"
)

// unpooled is a client that keeps no connection: net/http sends a request with
// an Idempotency-Key again by itself when a kept one is lost, and no try of ours
// shows it.
func unpooled() memwrite.Option {
	tr := http.DefaultTransport.(*http.Transport).Clone()
	tr.DisableKeepAlives = true
	return memwrite.WithHTTPClient(&http.Client{Transport: tr})
}

func TestDeletionsCarryTheirKeyOnEveryTry(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(n int, w http.ResponseWriter, r *http.Request) {
		switch {
		case n%2 == 1:
			panic(http.ErrAbortHandler)
		case r.URL.Path == "/v1/memories":
			respond(w, 200, `{"deleted":3}`)
		default:
			respond(w, 200, `{"id":"a/b","deleted":true}`)
		}
	})
	c := srv.client(t, unpooled())
	one, err := c.Delete(t.Context(), memwrite.NewRef("note_delete", "1"), "a/b")
	if err != nil || one.Deleted != 1 || one.Tries != 2 || one.Key != "note_delete-1" {
		t.Error(one, err)
	}
	all, err := c.DeleteAll(t.Context(), memwrite.NewRef("user_delete", "sam"), memwrite.Scope{UserID: "sam"})
	if err != nil || all.Deleted != 3 || all.Tries != 2 {
		t.Error(all, err)
	}
	want := []string{"note_delete-1", "note_delete-1", "user_delete-sam", "user_delete-sam"}
	for i, r := range srv.requests() {
		if r.method != "DELETE" || r.header.Get("Idempotency-Key") != want[i] {
			t.Errorf("try %d: %s %s %v", i, r.method, r.path, r.header)
		}
	}
}

func TestDeletionsWithoutAKeyNeverLeave(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) { respond(w, 200, `{"deleted":1}`) })
	c := srv.client(t)
	key := memwrite.NewRef("d", "1")
	for name, call := range map[string]func() (*memwrite.DeleteResult, error){
		"no key": func() (*memwrite.DeleteResult, error) { return c.Delete(t.Context(), memwrite.Ref{}, "x") },
		"no id":  func() (*memwrite.DeleteResult, error) { return c.Delete(t.Context(), key, " ") },
		"a path": func() (*memwrite.DeleteResult, error) { return c.Delete(t.Context(), key, "..") },
		"no key for all": func() (*memwrite.DeleteResult, error) {
			return c.DeleteAll(t.Context(), memwrite.Ref{}, memwrite.Scope{UserID: "x"})
		},
		"no scope": func() (*memwrite.DeleteResult, error) { return c.DeleteAll(t.Context(), key, memwrite.Scope{}) },
	} {
		if _, err := call(); !errors.Is(err, memwrite.ErrInvalidInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := len(srv.requests()); n != 0 {
		t.Errorf("%d requests left", n)
	}
}

func TestADeletionThatDoesNotSaySoIsNone(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{}`, `{"deleted":false}`, `{"deleted":"yes"}`, `<html>`, ``} {
		srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) { respond(w, 200, body) })
		if res, err := srv.client(t).Delete(t.Context(), memwrite.NewRef("d", "1"), "x"); !errors.Is(err, memwrite.ErrUnknownOutcome) {
			t.Errorf("%s: %+v, %v", body, res, err)
		}
	}
}

// The trap of a deletion sent again: by its key it is the same one, and takes
// nothing that came later.
func TestTrapADeletionSentAgainSparesWhatCameLater(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := srv.Client(t, memwrite.WithRetryPolicy(quick()), unpooled())
	ctx := t.Context()
	write := func(id string) memwrite.WriteResult {
		t.Helper()
		got, err := c.AddVerbatim(ctx, memwrite.InferRequest{Key: memwrite.NewRef("note", id), Scope: memwrite.Scope{UserID: "sam"}, Content: "text of " + id})
		if err != nil {
			t.Fatal(err)
		}
		return got.Records[0]
	}
	first := write("1")
	write("2")
	all := memwrite.NewRef("user_delete", "sam")
	srv.Arm(mockserver.Fault{Kind: mockserver.DropResponse, Key: all.String()})
	res, err := c.DeleteAll(ctx, all, memwrite.Scope{UserID: "sam"})
	if err != nil || res.Deleted != 2 || res.Tries != 2 {
		t.Fatal(res, err)
	}
	later := write("3")
	if res, err := c.DeleteAll(ctx, all, memwrite.Scope{UserID: "sam"}); err != nil || res.Deleted != 2 {
		t.Error(res, err)
	}
	if _, err := c.Record(ctx, later.ID); err != nil {
		t.Errorf("what came later is gone: %v", err)
	}
	if _, err := c.DeleteAll(ctx, all, memwrite.Scope{UserID: "kim"}); !errors.Is(err, memwrite.ErrConflict) {
		t.Error(err)
	}
	if _, err := c.Delete(ctx, memwrite.NewRef("note", "3"), later.ID); !errors.Is(err, memwrite.ErrConflict) {
		t.Errorf("the key of the write: %v", err)
	}
	if _, err := c.Delete(ctx, memwrite.NewRef("note_delete", "1"), first.ID); !errors.Is(err, memwrite.ErrNotFound) {
		t.Error(err)
	}
}
