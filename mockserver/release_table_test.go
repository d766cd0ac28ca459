package mockserver_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/memwrite/memwrite-go/mockserver"
)

// Each state of a write, what it proves, and what its caller may safely do.
func TestFiveStatesOnTheWire(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		state, status, operation string
		attempts                 float64
		reserved, settled, freed int
		retry                    int // POST /v1/operations/{id}/retry
		reach                    func(*caller) string
	}{
		{"accepted", "PENDING", "pending", 0, 1, 0, 0, 202, func(c *caller) string {
			// Nobody is told of it and the clock stands still, so that there is
			// nothing but the accepted command.
			c.srv.Freeze()
			c.srv.Arm(mockserver.Fault{Kind: mockserver.LoseWakeup})
			got := c.want(c.do("POST", "/v1/memories", thursday, "Idempotency-Key", "k"), 202, "")
			id, _ := got.fields()["event_id"].(string)
			if got.fields()["status"] != "PENDING" || got.header.Get("Idempotent-Replayed") != "" || !strings.HasPrefix(id, "task_") {
				c.t.Errorf("the receipt %s, %v", got.body, got.header)
			}
			durable(c, id)
			c.srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner}) // for when its twin wakes one
			return id
		}},
		{"pending", "PENDING", "pending", 0, 9, 0, 0, 202, waiting},
		{"running", "RUNNING", "processing", 1, 1, 0, 0, 202, func(c *caller) string {
			held := c.srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner})
			id := c.infers("k", thursday)
			c.struck(held, 1)
			return id
		}},
		{"succeeded", "SUCCEEDED", "success", 1, 1, 1, 0, 404, func(c *caller) string {
			id := c.infers("k", thursday)
			c.whole(id, "k")
			return id
		}},
		{"failed", "FAILED", "dead", 5, 1, 0, 1, 202, func(c *caller) string {
			c.srv.Arm(mockserver.Fault{Kind: mockserver.ProviderTimeout, Times: 5})
			id := c.infers("k", thursday)
			c.refunded(id, "k")
			return id
		}},
	} {
		t.Run(row.state, func(t *testing.T) {
			t.Parallel()
			opts := []mockserver.Option{}
			if row.state != "failed" {
				opts = append(opts, mockserver.RealTimes())
			}
			srv := mockserver.Run(t, opts...)
			c := newCaller(t, srv)
			id := row.reach(c)
			event := c.event(id)
			op := c.want(c.do("GET", "/v1/operations/"+id, ""), 200, "").fields()
			if event["status"] != row.status || event["attempts"] != row.attempts || op["status"] != row.operation {
				t.Errorf("event %v\noperation %v", event, op)
			}
			ended := row.status == "SUCCEEDED" || row.status == "FAILED"
			if (event["completed_at"] != nil) != ended || (event["started_at"] != nil) != (row.attempts > 0) || (op["next_attempt_at"] != nil) != (row.status == "PENDING") {
				t.Errorf("times: event %v\noperation %v", event, op)
			}
			if (event["write_summary"] != nil) != (row.status == "SUCCEEDED") || (event["error"] != nil) != (row.status == "FAILED") {
				t.Errorf("outcome: %v", event)
			}
			if l := srv.Ledger(); l.Reserved != row.reserved || l.Settled != row.settled || l.Released != row.freed {
				t.Errorf("ledger %+v", l)
			}
			// A second command is never made by sending it again.
			got := c.want(c.do("POST", "/v1/memories", thursday, "Idempotency-Key", "k"), 202, "").fields()
			if got["event_id"] != id || got["status"] != row.status {
				t.Errorf("sent again: %v", got)
			}
			c.want(c.do("POST", "/v1/operations/"+id+"/retry", ""), row.retry, "")
			if row.state == "failed" {
				if got := c.ended(id); got["status"] != "SUCCEEDED" {
					t.Errorf("retried: %v", got)
				}
			}
			srv.Disarm()
			srv.Thaw()
			c.whole(id, "k")
		})
	}
}

// durable asserts that an accepted command outlives the process: whoever holds
// its store knows the key, refuses another command under it, and carries it to
// its end, paid once.
func durable(c *caller, id string) {
	c.t.Helper()
	if n := len(c.srv.Records()); n != 0 {
		c.t.Errorf("%d records of a command that is only accepted", n)
	}
	snap, err := c.srv.Snapshot()
	if err != nil {
		c.t.Fatal(err)
	}
	next := newCaller(c.t, mockserver.Run(c.t))
	asked := counted(next.srv)
	if err := next.srv.Restore(snap); err != nil {
		c.t.Fatal(err)
	}
	next.want(next.do("POST", "/v1/memories", day("Friday"), "Idempotency-Key", "k"), 409, "IDEMPOTENCY_CONFLICT")
	if again := next.infers("k", thursday); again != id {
		c.t.Errorf("the receipt was for %s and is for %s", id, again)
	}
	if got := next.whole(id, "k"); got["attempts"] != 1.0 || asked.Load() != 1 || next.srv.Ledger().Reserved != 1 {
		c.t.Errorf("asked %d times, ledger %+v: %v", asked.Load(), next.srv.Ledger(), got)
	}
}

// waiting gives the event of a write that no runner is free for.
func waiting(c *caller) string {
	const runners = 8
	full := c.srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Times: runners})
	for i := range runners {
		c.infers(fmt.Sprint("other", i), fmt.Sprintf(`{"content":"I like tea number %d","user_id":"sam"}`, i))
	}
	c.struck(full, runners)
	return c.infers("k", thursday)
}
