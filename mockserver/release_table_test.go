package mockserver_test

import (
	"fmt"
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
		{"accepted", "PENDING", "pending", 0, 9, 0, 0, 202, func(c *caller) string {
			// The command is durable: it outlives the store it was accepted by.
			id := waiting(c)
			snap, err := c.srv.Snapshot()
			if err != nil {
				c.t.Fatal(err)
			}
			c.srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Times: -1, Key: "k"})
			if err := c.srv.Restore(snap); err != nil {
				c.t.Fatal(err)
			}
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
			if row.state == "accepted" {
				// Runners of the restored server may have taken it up by now.
				if s := event["status"]; s != "PENDING" && s != "RUNNING" {
					t.Errorf("event %v", event)
				}
				if again := c.infers("k", thursday); again != id {
					t.Error("the receipt was not kept")
				}
				srv.Disarm()
				c.whole(id, "k")
				return
			}
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
			c.whole(id, "k")
		})
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
