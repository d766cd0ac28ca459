package memwrite_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
)

func TestS15_InProgressAfterATimeoutEndsInSuccess(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, opt memwrite.Option) {
		srv := listen(t, func(n int, w http.ResponseWriter, r *http.Request) {
			switch n {
			case 1:
				<-r.Context().Done() // committed, and the answer never comes
			case 2:
				respond(w, 409, `{"code":"IDEMPOTENCY_INCOMPLETE","message":"m","request_id":"r"}`)
			default:
				respond(w, 200, `{"results":[{"id":"m1","memory":"x","event":"ADD"}]}`)
			}
		})
		p := quick()
		p.TryTimeout = 400 * time.Millisecond
		res, err := srv.client(t, opt, memwrite.WithRetryPolicy(p)).AddVerbatim(t.Context(), theInferred())
		if err != nil || len(res.Records) != 1 || res.Tries != 3 {
			t.Error(res, err)
		}
	})
}

// net/http may replay a request with an Idempotency-Key on a new connection by
// itself. The number of the try does not change then, nor the key.
func TestS16_ConnectionCutOnAReusedSocket(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 2 {
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				c.Close()
			}
			return
		}
		respond(w, 202, `{"message":"m","status":"PENDING","event_id":"task_1"}`)
	})
	c := srv.client(t)
	for range 2 {
		if _, err := c.AddAsync(t.Context(), theInferred()); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range srv.requests() {
		if r.header.Get("Idempotency-Key") != "note-0101" || r.header.Get("Memwrite-Try") == "" {
			t.Error(r.header)
		}
	}
}

func TestS17_AWriteWithoutIdentityIsSentOnce(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, opt memwrite.Option) {
		srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) { respond(w, 503, "") })
		req := theNote()
		req.Ref = memwrite.Ref{}
		_, err := srv.client(t, opt).Add(t.Context(), req)
		if !errors.Is(err, memwrite.ErrServer) || len(srv.requests()) != 1 {
			t.Error(len(srv.requests()), err)
		}
	})
}

func TestS18_SocketClosedAfterTheBodyWasRead(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, opt memwrite.Option) {
		srv := listen(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			if n == 1 {
				panic(http.ErrAbortHandler)
			}
			respond(w, 201, storedBody)
		})
		res, err := srv.client(t, opt).Add(t.Context(), theNote())
		if err != nil || res.Outcome != memwrite.Stored {
			t.Fatal(res, err)
		}
		reqs := srv.requests()
		if len(reqs) != 2 || reqs[0].body != reqs[1].body {
			t.Error(reqs)
		}
	})
}

func TestS20_TheIdentityIsOnResultAndError(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			respond(w, 202, `{"message":"m","status":"PENDING","event_id":"task_1"}`)
			return
		}
		respond(w, 409, `{"code":"IDEMPOTENCY_CONFLICT","message":"m"}`)
	})
	c := srv.client(t)
	r, err := c.AddAsync(t.Context(), theInferred())
	if err != nil || r.Key != "note-0101" {
		t.Error(r, err)
	}
	_, err = c.AddAsync(t.Context(), theInferred())
	var e *memwrite.Error
	if !errors.As(err, &e) || e.Identity != "note-0101" {
		t.Error(err)
	}
}

func TestS21_TheSecondTryHasTheWholeBody(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, opt memwrite.Option) {
		srv := listen(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			if n == 1 {
				w.Header().Set("Connection", "close")
				respond(w, 503, "")
				return
			}
			respond(w, 201, storedBody)
		})
		if _, err := srv.client(t, opt).Add(t.Context(), theNote()); err != nil {
			t.Fatal(err)
		}
		reqs := srv.requests()
		if len(reqs) != 2 || reqs[0].body == "" || reqs[0].body != reqs[1].body {
			t.Error(reqs)
		}
	})
}
