package mockserver_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/mockserver"
)

// hibiken/asynq#1144: active without a lease record, an orphan for ever. The
// store refuses such a row, so it can only come in by a snapshot, and does not.
func TestB17_RunningWithoutALeaseIsRefused(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.RealTimes())
	c := newCaller(t, srv)
	held := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner})
	c.infers("k", thursday)
	c.struck(held, 1)
	snap, err := srv.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(snap), `"Token":"`) + len(`"Token":"`)
	end := at + strings.Index(string(snap[at:]), `"`)
	if err := srv.Restore([]byte(string(snap[:at]) + string(snap[end:]))); err == nil {
		t.Error("a task that runs without a lease was restored")
	}
	c.sound()
}

// graphile/worker#204: a crash kept its lock for four hours. Here it is lease
// and repair, and the beat that may have been on its way.
func TestB18_ACrashIsReclaimedWithinLeaseAndRepair(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.RealTimes())
	srv.Freeze()
	c := newCaller(t, srv)
	died := srv.Arm(mockserver.Fault{Kind: mockserver.KillRunner})
	id := c.infers("k", thursday)
	c.struck(died, 1)
	c.drive(id)
	c.whole(id, "k")
	task, _ := srv.TaskByKey("k")
	if d := task.CompletedAt.Sub(task.CreatedAt); d < 30*time.Second || d > 65*time.Second {
		t.Errorf("reclaimed and done after %v", d)
	}
}

// graphile/worker#254: a named queue stayed locked at the last attempt. There
// are no order locks here; the nearest is the next write of the same user.
func TestB20_AFailedTaskHoldsUpNobody(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	srv.Arm(mockserver.Fault{Kind: mockserver.ProviderDown, Key: "k", Times: -1})
	id := c.infers("k", thursday)
	c.whole(c.infers("next", day("Friday")), "next")
	c.refunded(id, "k")
	c.whole(c.infers("last", day("Monday")), "last")
}

// dbos-transact-py#805: a recovered workflow stood between two steps. Another
// server starts on the store with the plan frozen, and asks no model.
func TestB21_AFrozenPlanGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	first := mockserver.Run(t, mockserver.RealTimes())
	c := newCaller(t, first)
	held := first.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Point: mockserver.AfterPlan})
	id := c.infers("k", thursday)
	c.struck(held, 1)
	snap, err := first.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	second := mockserver.Run(t, mockserver.RealTimes())
	asked := counted(second)
	if err := second.Restore(snap); err != nil {
		t.Fatal(err)
	}
	c = newCaller(t, second)
	second.Advance(31 * time.Second)
	if got := c.whole(id, "k"); got["attempts"] != 2.0 || asked.Load() != 0 {
		t.Errorf("asked %d times: %v", asked.Load(), got)
	}
}

// taskiq-aio-pika#35: the counter lived in the process that died. A task that
// kills every runner ends at its limit, however often it is delivered.
func TestB23_ATaskThatKillsEveryRunnerEndsFailed(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	died := srv.Arm(mockserver.Fault{Kind: mockserver.KillRunner, Times: -1})
	srv.Arm(mockserver.Fault{Kind: mockserver.DuplicateWakeup})
	id := c.infers("k", thursday)
	for i := 1; i <= 5; i++ {
		c.struck(died, i)
		c.infers("k", thursday) // one more delivery
		srv.Advance(500 * time.Millisecond)
	}
	if got := c.refunded(id, "k"); got["attempts"] != 5.0 || died.Fired() != 5 || got["failure_class"] != "interrupted" {
		t.Errorf("%d runners died: %v", died.Fired(), got)
	}
	if l := srv.Ledger(); l.Released != 1 || l.Settled != 0 {
		t.Errorf("ledger %+v", l)
	}
}

// Tencent/WeKnora#3462: a handler that ignores its context kept the slot.
func TestB24_AModelThatIgnoresItsContextIsLeftBehind(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.RealTimes())
	srv.Freeze()
	c := newCaller(t, srv)
	asked, never := atomic.Int64{}, make(chan struct{})
	defer close(never)
	srv.SetScript(func(text string) ([]mockserver.Fact, bool) {
		if strings.Contains(text, "Thursday") && asked.Add(1) <= 8 {
			<-never
		}
		return nil, false
	})
	ids := map[string]string{}
	for i := range 8 { // as many as there are runners
		key := fmt.Sprint("k", i)
		ids[key] = c.infers(key, thursday)
	}
	for asked.Load() < 8 {
		c.do("GET", "/v1/health", "")
	}
	for key, id := range ids {
		if got := c.drive(id); got["status"] != "SUCCEEDED" || got["attempts"].(float64) < 2 {
			t.Errorf("%s: %v", key, got)
		}
	}
	c.sound()
}

// contribsys/faktory#453: the death of a worker was noticed only at the end of
// its reservation. A runner without a heartbeat is replaced after one lease.
func TestB25_NoHeartbeatIsNoticed(t *testing.T) {
	t.Parallel()
	c := newCaller(t, mockserver.Run(t, mockserver.RealTimes()))
	old, id := c.overtaken(mockserver.BeforeInference)
	if got := c.event(id); got["attempts"] != 2.0 {
		t.Errorf("%v", got)
	}
	c.unchanged(old, id)
}

// VilledeMontreal/express-idempotency#32: a crash left the key "in progress"
// for three days. The connection dies before and after the commit.
func TestB26_ACrashAtTheAcceptLeavesNoMarker(t *testing.T) {
	t.Parallel()
	for _, kind := range []mockserver.Kind{mockserver.Reset, mockserver.DropResponse, mockserver.Truncate} {
		srv := mockserver.Run(t)
		c := newCaller(t, srv)
		srv.Arm(mockserver.Fault{Kind: kind, Key: "k"})
		if err := c.lost("k", thursday); err == nil {
			t.Errorf("%s: the answer came through", kind)
		}
		c.whole(c.infers("k", thursday), "k")
		if n := len(srv.Tasks()); n != 1 {
			t.Errorf("%s: %d tasks", kind, n)
		}
	}
}

// oban-bg/oban#702: every notification was swallowed. Work goes on by repair
// alone. That the loop does not spin meanwhile is measured where it is built.
func TestB30_WithEveryWakeupLostAllTasksEnd(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.RealTimes())
	srv.Freeze()
	c := newCaller(t, srv)
	lost := srv.Arm(mockserver.Fault{Kind: mockserver.LoseWakeup, Times: -1})
	ids := map[string]string{}
	for i := range 12 {
		key := fmt.Sprint("k", i)
		ids[key] = c.infers(key, day(fmt.Sprint("evening ", i)))
	}
	if lost.Fired() != 12 {
		t.Errorf("%d wake-ups were lost", lost.Fired())
	}
	srv.Advance(5 * time.Second)
	for key, id := range ids {
		c.drive(id)
		c.whole(id, key)
	}
}
