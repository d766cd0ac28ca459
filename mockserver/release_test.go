package mockserver_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/memwrite/memwrite-go/mockserver"
)

// thursday is the command of these tests; what is kept of it is in other words,
// so that the raw input can be told from its result.
const thursday = `{"content":"My team ships releases every Thursday.","user_id":"sam"}`

const kept = "Ships releases every Thursday"

// infers sends the command under a key and gives its event.
func (c *caller) infers(key, body string) string {
	c.t.Helper()
	id, _ := c.want(c.do("POST", "/v1/memories", body, "Idempotency-Key", key), 202, "").fields()["event_id"].(string)
	return id
}

// event reads an event as it stands.
func (c *caller) event(id string) map[string]any {
	c.t.Helper()
	return c.want(c.do("GET", "/v1/events/"+id, ""), 200, "").fields()
}

// struck waits until a fault has struck so often.
func (c *caller) struck(a *mockserver.Armed, times int) {
	c.t.Helper()
	for a.Fired() < times {
		c.do("GET", "/v1/health", "")
	}
}

// whole asserts what must be true of every write that SUCCEEDED: its records
// and its settlement are there once, and no invariant is broken.
func (c *caller) whole(id, key string) map[string]any {
	c.t.Helper()
	got := c.ended(id)
	if got["status"] != "SUCCEEDED" || got["completed_at"] == nil || got["error"] != nil {
		c.t.Errorf("%s ended as %v", key, got)
	}
	c.srv.StoredOnce(c.t, key)
	c.srv.ChargedOnce(c.t, key)
	c.sound()
	return got
}

// refunded asserts what must be true of every write that FAILED.
func (c *caller) refunded(id, key string) map[string]any {
	c.t.Helper()
	got := c.ended(id)
	if got["status"] != "FAILED" || got["error"] == nil || len(got["results"].([]any)) != 0 {
		c.t.Errorf("%s ended as %v", key, got)
	}
	task, _ := c.srv.TaskByKey(key)
	for _, r := range c.srv.Records() {
		if r.TaskID == task.ID {
			c.t.Errorf("%s FAILED and left a record", key)
		}
	}
	c.sound()
	return got
}

// sound asserts the invariants over everything that is stored.
func (c *caller) sound() {
	c.t.Helper()
	if l := c.srv.Ledger(); !l.Balanced {
		c.t.Errorf("ledger %+v", l)
	}
	if err := c.srv.Check(); err != nil {
		c.t.Error(err)
	}
}

func states(srv *mockserver.Server, key string) string {
	task, _ := srv.TaskByKey(key)
	return strings.Join(task.Transitions, " ")
}

// The same request before anything ran, while a runner is at it, and when it
// is done: one event, one charge, one record.
func TestReleaseRepeatBeforeDuringAndAfterCompletion(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.RealTimes())
	c := newCaller(t, srv)
	// All runners are taken, so the task waits as PENDING.
	const runners = 8
	full := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Times: runners})
	for i := range runners {
		c.infers(fmt.Sprint("other", i), fmt.Sprintf(`{"content":"I like tea number %d","user_id":"sam"}`, i))
	}
	c.struck(full, runners)
	held := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Point: mockserver.AfterInference, Key: "k"})
	id := c.infers("k", thursday)
	again := func(want string) {
		t.Helper()
		got := c.want(c.do("POST", "/v1/memories", thursday, "Idempotency-Key", "k"), 202, "")
		f := got.fields()
		if f["event_id"] != id || f["status"] != want || got.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("repeated while %s: %s", want, got.body)
		}
	}
	again("PENDING")
	full.Release()
	c.struck(held, 1)
	again("RUNNING")
	held.Release()
	c.whole(id, "k")
	again("SUCCEEDED")
	c.whole(id, "k")
	if got := states(srv, "k"); got != "PENDING RUNNING SUCCEEDED" {
		t.Errorf("history %s", got)
	}
}

func TestReleaseChangedPayloadConflicts(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	id := c.infers("k", thursday)
	for name, body := range map[string]string{
		"content":  strings.Replace(thursday, "Thursday", "Friday", 1),
		"scope":    strings.Replace(thursday, "sam", "eve", 1),
		"mode":     strings.Replace(thursday, `"user_id"`, `"infer":false,"user_id"`, 1),
		"metadata": strings.Replace(thursday, `"user_id"`, `"metadata":{"a":1},"user_id"`, 1),
		"date":     strings.Replace(thursday, `"user_id"`, `"event_date":"2026-08-05T00:00:00Z","user_id"`, 1),
	} {
		if got := c.do("POST", "/v1/memories", body, "Idempotency-Key", "k"); got.status != 409 || got.code() != "IDEMPOTENCY_CONFLICT" {
			t.Errorf("changed %s: %d %s", name, got.status, got.body)
		}
	}
	c.whole(id, "k")
	c.want(c.do("POST", "/v1/memories", strings.Replace(thursday, "Thursday", "Friday", 1), "Idempotency-Key", "k"), 409, "IDEMPOTENCY_CONFLICT")
	// Noise is no change.
	if again := c.infers(" k ", "\n"+strings.Replace(thursday, `,"user_id"`, ` , "infer":true, "user_id"`, 1)); again != id {
		t.Errorf("white space made another operation")
	}
	if n := len(srv.Tasks()); n != 1 || srv.Ledger().Reserved != 1 {
		t.Errorf("%d tasks, ledger %+v", n, srv.Ledger())
	}
	c.whole(id, "k")
}
