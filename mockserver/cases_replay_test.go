package mockserver_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/mockserver"
)

const verbatim = `{"content":"Likes tea","user_id":"sam","infer":false}`

// pathosDev/actor-ts#984: an error after the side effect deleted the claim, and
// a 5xx was remembered as the answer.
func TestB31_AnErrorAfterTheCommitExecutesNothingAgain(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	srv.Arm(mockserver.Fault{Kind: mockserver.Status, Code: 500, Key: "k"})
	c.want(c.do("POST", "/v1/memories", verbatim, "Idempotency-Key", "k"), 500, "")
	srv.Arm(mockserver.Fault{Kind: mockserver.DropResponse, Key: "k"})
	if c.lost("k", verbatim) == nil {
		t.Error("the answer came through")
	}
	got := c.want(c.do("POST", "/v1/memories", verbatim, "Idempotency-Key", "k"), 200, "")
	if got.header.Get("Idempotent-Replayed") != "true" || len(srv.Records()) != 1 {
		t.Errorf("%d records, %s", len(srv.Records()), got.body)
	}
	srv.StoredOnce(t, "k")
	srv.ChargedOnce(t, "k")
}

// Truxify#5846: the lock ended before the handler did. An add goes on longer
// than its caller is kept, and each retry waits for the same task.
func TestB32_AnAddThatOutlastsEveryWaitRunsOnce(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.InlineWait(5*time.Millisecond), mockserver.RealTimes())
	c := newCaller(t, srv)
	held := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner})
	for range 3 {
		c.want(c.do("POST", "/memory/add", note), 503, "")
	}
	held.Release()
	got := c.do("POST", "/memory/add", note)
	for got.status == 503 {
		got = c.do("POST", "/memory/add", note)
	}
	c.want(got, 200, "")
	srv.StoredOnce(t, "note-0001")
	srv.ChargedOnce(t, "note-0001")
	c.sound()
}

// Truxify#4623: a lock was deleted by one who did not own it. The only lock
// here is the lease: one who lost it cannot end another's.
func TestB33_OnlyItsOwnerEndsALease(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.RealTimes())
	srv.Freeze()
	c := newCaller(t, srv)
	old := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Point: mockserver.AfterPlan})
	next := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Point: mockserver.BeforeFinish})
	id := c.infers("k", thursday)
	c.struck(old, 1)
	srv.Advance(31 * time.Second)
	c.struck(next, 1)
	ends := c.leaseEnds()
	old.Release()
	c.infers("k", thursday)
	if got := c.event(id); got["status"] != "RUNNING" || got["attempts"] != 2.0 || !c.leaseEnds().Equal(ends) {
		t.Errorf("lease until %v, then %v: %v", ends, c.leaseEnds(), got)
	}
	next.Release()
	c.whole(id, "k")
}

// Truxify#6898: a waiter executed again without reading the result. All these
// wait inline for one task; one is told that it stored, the others where it is.
func TestB34_WaitersReadTheResult(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	asked := counted(srv)
	status := inParallel(64, func() int { return c.do("POST", "/memory/add", note).status })
	if status[201] != 1 || status[200] != 63 || asked.Load() != 1 || len(srv.Tasks()) != 1 {
		t.Errorf("answers %v, %d tasks, asked %d times", status, len(srv.Tasks()), asked.Load())
	}
	srv.StoredOnce(t, "note-0001")
	srv.ChargedOnce(t, "note-0001")
}

// inParallel counts what n calls give in one moment.
func inParallel[T comparable](n int, f func() T) map[T]int {
	var group sync.WaitGroup
	var mu sync.Mutex
	out := map[T]int{}
	for range n {
		group.Go(func() {
			v := f()
			mu.Lock()
			defer mu.Unlock()
			out[v]++
		})
	}
	group.Wait()
	return out
}

// square1-io/laravel-idempotency#1: look, then write. A verbatim write and a
// turn are accepted in one step each.
func TestB35_ThereIsNothingBetweenLookAndWrite(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	const turn = `{"tenant_id":"default","user_id":"sam","text":"I moved to Lisbon last month.","role":"user","speaker":"sam","occurred_at":"2026-06-16T09:30:00Z"}`
	turns := inParallel(32, func() string {
		s, _ := c.do("POST", "/v1/memory/add_turn", turn).fields()["processing_status"].(string)
		return s
	})
	bodies := inParallel(32, func() string { return string(c.do("POST", "/v1/memories", verbatim, "Idempotency-Key", "k").body) })
	if turns["distilling"] != 1 || turns["skipped_replay"] != 31 || len(bodies) != 1 || len(srv.Tasks()) != 2 {
		t.Errorf("turns %v, verbatim %v, %d tasks", turns, bodies, len(srv.Tasks()))
	}
	srv.StoredOnce(t, "k")
}

// flexprice#2488: a key was unique over all tenants.
func TestB37_OneKeyInTwoWorkspacesIsTwoCommands(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	other := "Bearer " + srv.NewKey("other", "fishmem", "memory:read", "memory:write", "operations:read")
	id := c.infers("k", thursday)
	theirs := c.want(c.do("POST", "/v1/memories", day("Friday"), "Idempotency-Key", "k", "Authorization", other), 202, "").fields()["event_id"]
	if theirs == id || theirs == nil {
		t.Errorf("events %v and %v", id, theirs)
	}
	c.whole(id, "k")
	c.want(c.do("GET", "/v1/events/"+id, "", "Authorization", other), 404, "EVENT_NOT_FOUND")
}

// nensii21/devlink#1195: a key was bound to no route and no body.
func TestB38_AKeyIsBoundToItsOperation(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	id := c.infers("k", thursday)
	c.want(c.do("POST", "/v1/memories", strings.Replace(thursday, `"user_id"`, `"infer":false,"user_id"`, 1), "Idempotency-Key", "k"), 409, "IDEMPOTENCY_CONFLICT")
	c.want(c.do("POST", "/v1/memories", verbatim, "Idempotency-Key", "v"), 200, "")
	c.want(c.do("POST", "/v1/memories", strings.Replace(verbatim, `,"infer":false`, "", 1), "Idempotency-Key", "v"), 409, "IDEMPOTENCY_CONFLICT")
	// A reference of the other wire has a space of its own.
	c.want(c.do("POST", "/memory/add", strings.Replace(note, "note-0001", "k", 1)), 201, "")
	if got := c.ended(id); got["status"] != "SUCCEEDED" || len(srv.Tasks()) != 3 {
		t.Errorf("%d tasks, %v", len(srv.Tasks()), got)
	}
	c.sound()
}

// arcp swift-sdk#72: a replay ignored its parameters.
func TestB39_OneByteMakesAConflict(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	first := c.want(c.do("POST", "/v1/memories", verbatim, "Idempotency-Key", "k"), 200, "")
	for _, body := range []string{
		strings.Replace(verbatim, "tea", "sea", 1), strings.Replace(verbatim, "sam", "san", 1),
		strings.Replace(verbatim, `"infer"`, `"agent_id":"a","infer"`, 1), strings.Replace(verbatim, "Likes", "likes", 1),
	} {
		c.want(c.do("POST", "/v1/memories", body, "Idempotency-Key", "k"), 409, "IDEMPOTENCY_CONFLICT")
	}
	again := c.want(c.do("POST", "/v1/memories", verbatim, "Idempotency-Key", "k"), 200, "")
	if string(again.body) != string(first.body) || len(srv.Records()) != 1 {
		t.Errorf("%s became %s", first.body, again.body)
	}
	srv.ChargedOnce(t, "k")
}

// actor-ts#1308: a replay was empty, or lost its status and headers. Equal
// bytes are promised for infer:false; a receipt tells the status of now.
func TestB41_AVerbatimReplayIsEqualByByte(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	first := c.want(c.do("POST", "/v1/memories", verbatim, "Idempotency-Key", "k"), 200, "")
	srv.Advance(40 * 24 * time.Hour)
	again := c.do("POST", "/v1/memories", verbatim, "Idempotency-Key", "k")
	if again.status != first.status || string(again.body) != string(first.body) {
		t.Errorf("%d %s became %d %s", first.status, first.body, again.status, again.body)
	}
	for name := range first.header {
		if name != "Date" && name != "X-Request-Id" && again.header.Get(name) != first.header.Get(name) {
			t.Errorf("%s: %q became %q", name, first.header.Get(name), again.header.Get(name))
		}
	}
	if again.header.Get("Idempotent-Replayed") != "true" {
		t.Error("the replay is not marked")
	}
}

// stripe/stripe-ruby#598: a client sent an old key on later requests. The
// server says so, however old the key is.
func TestB42_AnOldKeyOnANewRequestIsFlagged(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	id := c.infers("k", thursday)
	c.whole(id, "k")
	srv.Advance(400 * 24 * time.Hour)
	c.want(c.do("POST", "/v1/memories", day("Friday"), "Idempotency-Key", "k"), 409, "IDEMPOTENCY_CONFLICT")
	if again := c.infers("k", thursday); again != id {
		t.Error("the first request was forgotten")
	}
	c.whole(id, "k")
}

// formancehq/stack#1633: one key twice in a batch crashed. A batch has no keys
// here; the nearest is one text twice in it.
func TestB43_ABatchMayRepeatItself(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	const item = `{"text":"I am allergic to peanuts."}`
	got := c.want(c.do("POST", "/memory/bulk-add", `{"items":[`+item+`,`+item+`,`+item+`]}`), 207, "").fields()
	if got["created"] != 1.0 || got["skipped"] != 2.0 || len(srv.Records()) != 1 {
		t.Errorf("%d records, %v", len(srv.Records()), got)
	}
	c.sound()
}
