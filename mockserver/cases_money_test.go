package mockserver_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/mockserver"
)

// failed is a FAILED write and its event, under a provider that is well again.
func (c *caller) failed(key string) string {
	c.t.Helper()
	c.srv.Arm(mockserver.Fault{Kind: mockserver.ProviderInvalid, Key: key})
	id := c.infers(key, thursday)
	c.refunded(id, key)
	return id
}

// antiwork/gumroad#6193: the event came before its transaction. One who looks
// while the runner stands before its end sees neither result nor settlement.
func TestB44_NoEventBeforeItsTransaction(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.RealTimes())
	c := newCaller(t, srv)
	held := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Point: mockserver.BeforeFinish})
	id := c.infers("k", thursday)
	c.struck(held, 1)
	if got := c.event(id); got["status"] != "RUNNING" || len(got["results"].([]any)) != 0 || got["completed_at"] != nil || srv.Ledger().Open != 1 {
		t.Errorf("ledger %+v, %v", srv.Ledger(), got)
	}
	held.Release()
	c.whole(id, "k")
}

// fossasia/eventyay#1405: concurrent refunds exceeded the payment. Fifty
// redrives of a refunded write reserve once, from credits for one.
func TestB45_ParallelRedrivesReserveOnce(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.Credits(2))
	c := newCaller(t, srv)
	id := c.failed("k")
	held := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner})
	status := inParallel(50, func() int { return c.do("POST", "/v1/operations/"+id+"/retry", "").status })
	if l := srv.Ledger(); status[202] != 50 || l.Reserved != 2 || l.Released != 1 || l.Open != 1 {
		t.Errorf("answers %v, ledger %+v", status, l)
	}
	held.Release()
	c.whole(id, "k")
}

// own-pay/OwnPay#222: a reconciler took silence for failure and refunded. The
// runner dies with the records written; repair looks, and settles.
func TestB46_RepairLooksAndDoesNotGuess(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.Attempts(1))
	c := newCaller(t, srv)
	srv.Arm(mockserver.Fault{Kind: mockserver.KillRunner, Point: mockserver.BeforeFinish})
	c.whole(c.infers("k", thursday), "k")
	if l := srv.Ledger(); l.Settled != 1 || l.Released != 0 {
		t.Errorf("ledger %+v", l)
	}
}

// webknossos#9331: a refunded job was retried for nothing.
func TestB48_ARetryAfterARefundReservesAnew(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.Credits(2))
	c := newCaller(t, srv)
	id := c.failed("k")
	c.want(c.do("POST", "/v1/operations/"+id+"/retry", ""), 202, "")
	c.whole(id, "k")
	if l := srv.Ledger(); l.Reserved != 2 || l.Released != 1 || l.Settled != 1 {
		t.Errorf("ledger %+v", l)
	}
	c.want(c.do("POST", "/v1/memories", day("Friday"), "Idempotency-Key", "more"), 402, "INSUFFICIENT_CREDITS")
}

// elizaOS/eliza#20754: an unknown reservation minted a refund, and retries that
// were used up looked like a success.
func TestB49_NothingIsRefundedThatWasNotReserved(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.Credits(2))
	c := newCaller(t, srv)
	for _, id := range []string{"task_0", "00000000-0000-0000-0000-000000000000"} {
		c.want(c.do("POST", "/v1/operations/"+id+"/retry", ""), 404, "OPERATION_NOT_RETRYABLE")
	}
	id := c.infers("k", thursday)
	c.whole(id, "k")
	c.want(c.do("POST", "/v1/operations/"+id+"/retry", ""), 404, "OPERATION_NOT_RETRYABLE")
	if l := srv.Ledger(); l.Reserved != 1 || l.Settled != 1 || l.Released != 0 {
		t.Errorf("ledger %+v", l)
	}
	c.want(c.do("POST", "/v1/memories", day("Friday"), "Idempotency-Key", "more"), 402, "INSUFFICIENT_CREDITS")
}

// formancehq/ledger#364: concurrent posts to one account got empty answers and
// equal ids. Fifty writes meet credits for thirty.
func TestB51_OneAccountUnderFiftyWriters(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.Credits(60))
	c := newCaller(t, srv)
	var n atomic.Int64
	events := inParallel(50, func() string {
		i := n.Add(1)
		got := c.do("POST", "/v1/memories", day(fmt.Sprint("evening ", i)), "Idempotency-Key", fmt.Sprint("k", i))
		if got.status == 402 {
			return got.code()
		}
		id, _ := c.want(got, 202, "").fields()["event_id"].(string)
		return id
	})
	if events["INSUFFICIENT_CREDITS"] != 20 || len(events) != 31 || events[""] != 0 {
		t.Errorf("answers %v", events)
	}
	for id := range events {
		if id != "INSUFFICIENT_CREDITS" {
			c.ended(id)
		}
	}
	c.sound()
	if l := srv.Ledger(); l.Reserved != 30 || l.Settled != 30 {
		t.Errorf("ledger %+v", l)
	}
}

// woocommerce-gateway-stripe#838: a refund was shown twice. Everything that
// can come again comes again after one.
func TestB52_ARefundIsShownOnce(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	id := c.failed("k")
	for range 3 {
		c.infers("k", thursday)
		srv.Advance(time.Hour)
		c.refunded(id, "k")
	}
	if l := srv.Ledger(); l.Reserved != 1 || l.Released != 1 || states(srv, "k") != "PENDING RUNNING FAILED" {
		t.Errorf("ledger %+v, history %s", l, states(srv, "k"))
	}
}
