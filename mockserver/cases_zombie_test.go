package mockserver_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/mockserver"
)

// riverqueue/river#1302: a sweeper acted on what it had read before the job was
// completed. Repair here decides inside its update, so the stale party is a
// runner that stands just before its last write while the task ends.
func TestB01_StaleSnapshotDoesNotReviveACompletedTask(t *testing.T) {
	t.Parallel()
	c := newCaller(t, mockserver.Run(t, mockserver.RealTimes()))
	old, id := c.overtaken(mockserver.BeforeFinish)
	c.unchanged(old, id)
}

// hatchet-dev/hatchet#1022: after a timeout both attempts went on.
func TestB05_OnlyTheNewAttemptGoesOn(t *testing.T) {
	t.Parallel()
	for _, at := range []mockserver.Point{mockserver.BeforeInference, mockserver.AfterInference, mockserver.AfterPlan, mockserver.AfterCommit} {
		c := newCaller(t, mockserver.Run(t, mockserver.RealTimes()))
		old, id := c.overtaken(at)
		c.unchanged(old, id)
		if l := c.srv.Ledger(); l.Settled != 2 { // this task and the one after it
			t.Errorf("%s: ledger %+v", at, l)
		}
	}
}

// OptimalBits/bull#356: the stalled check raced with completion and removal.
// Tasks are not removed here; the record is, while a runner that lost its lease
// could still write it.
func TestB07_ALateRunnerDoesNotBringBackWhatWasRemoved(t *testing.T) {
	t.Parallel()
	c := newCaller(t, mockserver.Run(t, mockserver.RealTimes()))
	old, id := c.overtaken(mockserver.AfterPlan)
	memory := c.event(id)["results"].([]any)[0].(map[string]any)["id"].(string)
	c.do("DELETE", "/v1/memories/"+memory, "", "Idempotency-Key", "removal")
	c.want(c.do("GET", "/v1/memories/"+memory, ""), 404, "MEMORY_NOT_FOUND")
	c.unchanged(old, id)
	c.want(c.do("GET", "/v1/memories/"+memory, ""), 404, "MEMORY_NOT_FOUND")
}

// rails/solid_queue#589: a job was finished and failed at once. The last
// attempt stands before its end while repair finds the limit reached.
func TestB08_OneTerminalTransition(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.RealTimes(), mockserver.Attempts(1))
	c := newCaller(t, srv)
	old := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Point: mockserver.AfterPlan})
	id := c.infers("k", thursday)
	c.struck(old, 1)
	srv.Advance(31 * time.Second)
	c.refunded(id, "k")
	old.Release()
	c.whole(c.infers("after", day("Sunday")), "after")
	if got := c.refunded(id, "k"); got["error_code"] != "RUNNER_LOST" || states(srv, "k") != "PENDING RUNNING FAILED" {
		t.Errorf("%v after %s", got, states(srv, "k"))
	}
}

// dbos-transact-java#491: start-up recovery ran what was running. A server that
// starts on the store of a running task waits for the end of its lease.
func TestB09_StartUpLeavesARunningTaskAlone(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.RealTimes())
	srv.Freeze()
	c := newCaller(t, srv)
	held := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner})
	id := c.infers("k", thursday)
	c.struck(held, 1)
	snap, err := srv.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Restore(snap); err != nil {
		t.Fatal(err)
	}
	c.whole(c.infers("after", day("Sunday")), "after")
	if got := c.event(id); got["status"] != "RUNNING" || got["attempts"] != 1.0 {
		t.Errorf("after the start: %v", got)
	}
	srv.Advance(31 * time.Second)
	if got := c.whole(id, "k"); got["attempts"] != 2.0 {
		t.Errorf("after its lease: %v", got)
	}
}

// dbos-transact-py#812: the loser of the commit kept running later steps.
func TestB11_TheLoserOfACommitStops(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.RealTimes())
	c := newCaller(t, srv)
	old, id := c.overtaken(mockserver.AfterPlan)
	later := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Point: mockserver.AfterCommit, Skip: 1, Times: -1})
	c.unchanged(old, id)
	if later.Fired() != 0 {
		t.Error("the loser came past its commit")
	}
}

// celery/celery#5935: a job that ran longer than its visibility timeout was
// delivered again. Heartbeats keep this one.
func TestB13_ASlowRunnerKeepsItsLease(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.RealTimes())
	srv.Freeze()
	c := newCaller(t, srv)
	asked, enough := atomic.Int64{}, make(chan struct{})
	srv.SetScript(func(string) ([]mockserver.Fact, bool) {
		asked.Add(1)
		<-enough
		return nil, false
	})
	id := c.infers("k", thursday)
	for asked.Load() == 0 {
		c.do("GET", "/v1/health", "")
	}
	for range 4 { // 40 s under a lease of 30 s, of the minute a model may take
		before := c.leaseEnds()
		srv.Advance(10 * time.Second)
		for i := 1; !c.leaseEnds().After(before); i++ {
			if i%200 == 0 { // a beat that began its wait late
				srv.Advance(time.Second)
			}
		}
	}
	close(enough)
	if got := c.whole(id, "k"); got["attempts"] != 1.0 || asked.Load() != 1 {
		t.Errorf("asked %d times: %v", asked.Load(), got)
	}
}

// hibiken/asynq#717: two recoverers listed one task. Here each twin of the
// request is one more look at the same expired lease.
func TestB14_AnExpiredTaskCountsOneAttempt(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.RealTimes())
	srv.Freeze()
	c := newCaller(t, srv)
	old := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner})
	id := c.infers("k", thursday)
	c.struck(old, 1)
	srv.Advance(31 * time.Second)
	c.atOnce("k", []string{thursday, thursday, thursday, thursday})
	if got := c.whole(id, "k"); got["attempts"] != 2.0 {
		t.Errorf("%v", got)
	}
}

// preloop/preloop#517: the row was committed early and acknowledged late. The
// runner dies behind its commit and the delivery comes twice.
func TestB15_DeathBetweenCommitAndEndRunsNothingTwice(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	asked := counted(srv)
	srv.Arm(mockserver.Fault{Kind: mockserver.DuplicateWakeup})
	srv.Arm(mockserver.Fault{Kind: mockserver.KillRunner, Point: mockserver.BeforeFinish})
	c.whole(c.infers("k", thursday), "k")
	if asked.Load() != 1 {
		t.Errorf("the model was asked %d times", asked.Load())
	}
}

// techdiary-dev#104: 21 attempts within a second. Each wait is held against the
// schedule of 1 s doubling, of which jitter takes up to a half.
func TestB16_RetriesKeepTheirDistance(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.RealTimes())
	srv.Freeze()
	c := newCaller(t, srv)
	srv.Arm(mockserver.Fault{Kind: mockserver.ProviderDown, Times: -1})
	id := c.infers("k", thursday)
	full := time.Second
	for attempt := 1.0; attempt < 5; attempt++ {
		op := map[string]any{}
		for op["status"] != "retry" || op["attempts"] != attempt {
			op = c.do("GET", "/v1/operations/"+id, "").fields()
			if op["attempts"].(float64) > attempt {
				t.Fatalf("attempt %v came before its time", op["attempts"])
			}
		}
		next, err := time.Parse(time.RFC3339Nano, op["next_attempt_at"].(string))
		if err != nil {
			t.Fatal(err)
		}
		wait := next.Sub(srv.Now())
		if wait < full/2-time.Millisecond || wait > full {
			t.Errorf("after attempt %v: %v, want %v to %v", attempt, wait, full/2, full)
		}
		srv.Advance(wait + time.Millisecond)
		full *= 2
	}
	c.refunded(id, "k")
}
