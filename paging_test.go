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

// Somebody else's object is no answer, whichever read it comes to.
func TestAReadBelievesNoOtherObject(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		other, own string
		read       func(c *memwrite.Client) error
	}{
		"Memory":    {`{"id":8,"text":"x"}`, `{"id":7,"text":"x"}`, func(c *memwrite.Client) error { _, err := c.Memory(t.Context(), "acme", 7); return err }},
		"Record":    {`{"id":"b","memory":"x"}`, `{"id":"a","memory":"x"}`, func(c *memwrite.Client) error { _, err := c.Record(t.Context(), "a"); return err }},
		"Event":     {`{"id":"b","status":"PENDING"}`, `{"id":"a","status":"PENDING"}`, func(c *memwrite.Client) error { _, err := c.Event(t.Context(), "a"); return err }},
		"Operation": {`{"id":"b","status":"pending"}`, `{"id":"a","status":"pending"}`, func(c *memwrite.Client) error { _, err := c.Operation(t.Context(), "a"); return err }},
		"Redrive":   {`{"id":"b","status":"pending"}`, `{"id":"a","status":"pending"}`, func(c *memwrite.Client) error { _, err := c.Redrive(t.Context(), "a"); return err }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := listen(t, func(n int, w http.ResponseWriter, _ *http.Request) {
				if n == 1 {
					respond(w, 200, tc.other)
					return
				}
				respond(w, 200, tc.own)
			})
			if err := tc.read(srv.client(t)); err != nil || len(srv.requests()) != 2 {
				t.Errorf("%v after %d requests", err, len(srv.requests()))
			}
			wrong := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) { respond(w, 200, tc.other) })
			if err := tc.read(wrong.client(t)); !errors.Is(err, memwrite.ErrUnknownOutcome) {
				t.Error(err)
			}
		})
	}
}
