package memwrite_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	memwrite "github.com/memwrite/memwrite-go"
)

// A service that leads a list in a circle ends it with an error: it would have
// no end otherwise, and ending it without one would pass for the whole list.
func TestAListThatGoesInACircle(t *testing.T) {
	t.Parallel()
	for _, circle := range []int{1, 2, 5} {
		srv := listen(t, func(n int, w http.ResponseWriter, r *http.Request) {
			if n > 50 {
				respond(w, 400, `{"code":"INVALID_CURSOR","message":"enough"}`)
				return
			}
			respond(w, 200, fmt.Sprintf(`{"results":[{"id":"e%d","status":"PENDING"}],"next_cursor":"c%d"}`, n, n%circle))
		})
		c := srv.client(t)
		var last error
		for _, err := range c.Events(t.Context(), memwrite.EventFilter{}) {
			last = err
		}
		if n := len(srv.requests()); n > circle+1 || !errors.Is(last, memwrite.ErrServer) {
			t.Errorf("a circle of %d: %d pages, %v", circle, n, last)
		}
		before := len(srv.requests())
		last = nil
		for _, err := range c.Memories(t.Context(), memwrite.Scope{UserID: "sam"}) {
			last = err
		}
		if n := len(srv.requests()) - before; n > circle+1 || !errors.Is(last, memwrite.ErrServer) {
			t.Errorf("records in a circle of %d: %d pages, %v", circle, n, last)
		}
	}
}

// A redrive whose event cannot be read either has no known end, and says so.
func TestARedriveThatCannotReadItsEventIsNotAMissingOne(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			respond(w, 404, `{"code":"OPERATION_NOT_RETRYABLE","message":"m"}`)
			return
		}
		respond(w, 503, "")
	})
	_, err := srv.client(t).Redrive(t.Context(), "task_1")
	if v := memwrite.VerdictOf(err); !errors.Is(err, memwrite.ErrServer) || v.Action != memwrite.RetryAfter {
		t.Errorf("%v: %v", v, err)
	}
	var e *memwrite.Error
	if !errors.As(err, &e) || e.Op != "Redrive" || e.Identity != "task_1" {
		t.Errorf("%+v", e)
	}
}

// The turn's own identity and method stand on an error, also when the question
// for its tenant failed.
func TestATurnThatFindsNoTenantKeepsItsIdentity(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) { respond(w, 503, "") })
	turn := theTurn()
	turn.TenantID = ""
	_, err := srv.client(t).AddTurn(t.Context(), turn)
	var e *memwrite.Error
	if !errors.As(err, &e) || e.Op != "AddTurn" || e.Identity == "" || e.Tries == 0 {
		t.Errorf("%+v", e)
	}
}
