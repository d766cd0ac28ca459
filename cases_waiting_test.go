package memwrite_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/mockserver"
)

func TestS31_AHangingTryIsTriedAgain(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, opt memwrite.Option) {
		srv := listen(t, func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 1 {
				<-r.Context().Done()
				return
			}
			respond(w, 201, storedBody)
		})
		p := quick()
		p.TryTimeout = 400 * time.Millisecond
		res, err := srv.client(t, opt, memwrite.WithRetryPolicy(p)).Add(t.Context(), theNote())
		if err != nil || res.Tries != 2 {
			t.Error(res, err)
		}
	})
}

func TestS34_TheDeadlineDoesNotHideTheAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, err := inVirtualTime(t, memwrite.RetryPolicy{}, time.Second, func(*http.Request) (int, http.Header, string) {
			return 503, nil, `{"detail":"draining"}`
		})
		var e *memwrite.Error
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &e) || e.StatusCode() != 503 || !strings.Contains(err.Error(), "tries") {
			t.Error(err)
		}
	})
}

func TestADeadContextSendsNothing(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) { respond(w, 201, storedBody) })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := srv.client(t).Add(ctx, theNote())
	if !errors.Is(err, context.Canceled) || len(srv.requests()) != 0 {
		t.Error(err)
	}
	if v := memwrite.VerdictOf(err); v.Action != memwrite.GiveBack {
		t.Error(v)
	}
}

// A service that answers 504 because its own deadline passed is not asked again
// on a context that has ended with it.
func TestS35_NoRequestAfterTheContextEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		c := bubbleClient(t, func(*http.Request) (int, http.Header, string) {
			sent++
			time.Sleep(4 * time.Second)
			return 504, nil, ""
		})
		_, err := c.Add(ctx, theNote())
		ended := sent
		if !errors.Is(err, context.DeadlineExceeded) || ended < 2 {
			t.Error(ended, err)
		}
		time.Sleep(time.Hour)
		if sent != ended {
			t.Errorf("%d requests after the end", sent-ended)
		}
	})
}

func TestS36_CancelEndsAWaitAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := bubbleClient(t, func(*http.Request) (int, http.Header, string) {
			return 200, nil, eventBody("task_1", memwrite.Retrying)
		})
		ctx, cancel := context.WithCancel(t.Context())
		begin := time.Now()
		time.AfterFunc(5*time.Second, cancel)
		_, err := c.WaitForEvent(ctx, "task_1")
		if d := time.Since(begin); d != 5*time.Second || !errors.Is(err, context.Canceled) || !errors.Is(err, memwrite.ErrStillPending) {
			t.Error(d, err)
		}
	})
}

func TestS37_CancelEndsABackOffAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := bubbleClient(t, func(*http.Request) (int, http.Header, string) {
			return 503, http.Header{"Retry-After": {"30"}}, ""
		})
		ctx, cancel := context.WithCancel(t.Context())
		begin := time.Now()
		time.AfterFunc(50*time.Millisecond, cancel)
		_, err := c.Add(ctx, theNote())
		if d := time.Since(begin); d != 50*time.Millisecond || !errors.Is(err, context.Canceled) {
			t.Error(d, err)
		}
	})
}

func TestS39_ForbiddenEndsAWaitOnTheFirstPoll(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		respond(w, 403, `{"code":"INSUFFICIENT_PERMISSION","message":"operations:read is required"}`)
	})
	_, err := srv.client(t).WaitForEvent(t.Context(), "task_1")
	if !errors.Is(err, memwrite.ErrForbidden) || len(srv.requests()) != 1 {
		t.Error(len(srv.requests()), err)
	}
}

func TestS40_APollThatHangsDoesNotStopTheWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := 0
		c := bubbleClient(t, func(r *http.Request) (int, http.Header, string) {
			if n++; n == 2 {
				<-r.Context().Done()
			}
			if n > 3 {
				return 200, nil, eventBody("task_1", memwrite.Succeeded)
			}
			return 200, nil, eventBody("task_1", memwrite.Running)
		})
		if _, err := c.WaitForEvent(t.Context(), "task_1"); err != nil || n != 4 {
			t.Error(n, err)
		}
	})
}

// The hint of the 202 belongs to that answer; a hint on a poll is obeyed.
func TestS41_RetryAfterOnAPollIsObeyed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var at []time.Duration
		c := bubbleClient(t, func(*http.Request) (int, http.Header, string) {
			at = append(at, time.Since(begin))
			if len(at) == 4 {
				return 200, nil, eventBody("task_1", memwrite.Succeeded)
			}
			return 200, http.Header{"Retry-After": {"7"}}, eventBody("task_1", memwrite.Running)
		})
		if _, err := c.WaitForEvent(t.Context(), "task_1"); err != nil {
			t.Fatal(err)
		}
		for i := 1; i < len(at); i++ {
			if at[i]-at[i-1] < 7*time.Second {
				t.Error(at)
			}
		}
	})
}

func TestS43_SucceededWithoutARecordIsNoMemory(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		respond(w, 200, eventBody("task_1", memwrite.Succeeded))
	})
	ev, err := srv.client(t).WaitForEvent(t.Context(), "task_1")
	if err != nil || !ev.NoMemory() {
		t.Error(ev, err)
	}
}

func TestS44_AReceiptWithNothingButItsIDAndStatus(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		respond(w, 202, `{"event_id":"task_1","status":"PENDING"}`)
	})
	r, err := srv.client(t).AddAsync(t.Context(), theInferred())
	if err != nil || r.EventID != "task_1" || r.Status != memwrite.Pending {
		t.Error(r, err)
	}
}

// What callers sleep minutes for elsewhere: the event says when the memory is
// there. ExampleClient_WaitForEvent and ExampleClient_AddAndWait show it with
// their output; here the memory is read back the moment the wait ends.
func TestS45_TheWaitEndsWhenTheMemoryIsThere(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := srv.Client(t)
	req := theInferred()
	receipt, err := c.AddAsync(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	ev, err := c.WaitForEvent(t.Context(), receipt.EventID)
	if err != nil || len(ev.Results) == 0 {
		t.Fatal(ev, err)
	}
	record, err := c.Record(t.Context(), ev.Results[0].ID)
	if err != nil || record.Memory != ev.Results[0].Memory {
		t.Error(record, err)
	}
}
