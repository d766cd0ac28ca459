package mockserver_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/mockserver"
)

func TestReleaseDroppedDeliveryIsRepaired(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.RealTimes())
	srv.Freeze()
	c := newCaller(t, srv)
	lost := srv.Arm(mockserver.Fault{Kind: mockserver.LoseWakeup})
	id := c.infers("k", thursday)
	if lost.Fired() != 1 {
		t.Fatal("the delivery was not lost")
	}
	// One repair interval, and nobody tells anyone.
	srv.Advance(5 * time.Second)
	got := c.whole(id, "k")
	if got["attempts"] != 1.0 {
		t.Errorf("repaired as %v", got)
	}
}

// Many look for work in the moment a lease ends: each twin of the request is a
// wake-up of its own.
func TestReleaseExpiredLeaseIsTakenByOneOfMany(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.RealTimes())
	srv.Freeze()
	c := newCaller(t, srv)
	asked := counted(srv)
	old := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner})
	next := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Point: mockserver.AfterInference})
	id := c.infers("k", thursday)
	c.struck(old, 1)
	srv.Advance(31 * time.Second)
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			if again := c.infers("k", thursday); again != id {
				t.Errorf("a twin got another event")
			}
		})
	}
	group.Wait()
	c.struck(next, 1)
	if got := c.event(id); got["attempts"] != 2.0 || got["status"] != "RUNNING" || asked.Load() != 1 {
		t.Errorf("asked %d times: %v", asked.Load(), got)
	}
	next.Release()
	c.whole(id, "k")
	// The one that lost it wakes up and changes nothing.
	before := states(srv, "k")
	old.Release()
	c.infers("after", strings.Replace(thursday, "Thursday", "Friday", 1))
	c.whole(id, "k")
	if got := states(srv, "k"); got != before || got != "PENDING RUNNING RUNNING SUCCEEDED" {
		t.Errorf("history %s, then %s", before, got)
	}
}

func TestReleaseProjectionFailureDoesNotDuplicateRows(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	asked := counted(srv)
	srv.Arm(mockserver.Fault{Kind: mockserver.FailProjection, Times: 2})
	id := c.infers("k", thursday)
	got := c.whole(id, "k")
	if got["attempts"] != 3.0 || asked.Load() != 1 || len(srv.Records()) != 1 || !srv.Records()[0].Projected {
		t.Errorf("asked %d times, records %+v: %v", asked.Load(), srv.Records(), got)
	}
	if got := states(srv, "k"); got != "PENDING RUNNING RETRYING RUNNING RETRYING RUNNING SUCCEEDED" {
		t.Errorf("history %s", got)
	}
}

// The record is there, read and paid for; only search does not know it yet.
func TestReleaseProjectionThatNeverHealsDoesNotUndoAWrite(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	broken := srv.Arm(mockserver.Fault{Kind: mockserver.FailProjection, Times: -1})
	id := c.infers("k", thursday)
	got := c.whole(id, "k")
	if got["attempts"] != 5.0 {
		t.Errorf("ended as %v", got)
	}
	memory := got["results"].([]any)[0].(map[string]any)["id"].(string)
	find := func() int {
		return len(c.want(c.do("POST", "/v1/memories/search", `{"query":"releases Thursday","user_id":"sam"}`), 200, "").fields()["results"].([]any))
	}
	c.struck(broken, 7) // repair has tried as well
	c.want(c.do("GET", "/v1/memories/"+memory, ""), 200, "")
	if n := find(); n != 0 {
		t.Errorf("search found %d memories that have no projection", n)
	}
	c.whole(id, "k")
	broken.Disarm()
	for find() == 0 {
		srv.Advance(time.Second)
	}
	c.whole(id, "k")
}
