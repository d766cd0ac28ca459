package mockserver_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/memwrite/memwrite-go/mockserver"
)

// The tests named TestB01 and so on replay reports about other job queues,
// idempotency layers and mock servers. Where the subject of a report does not
// exist here, its test says what it takes in its place.

// day is the command with another day in it.
func day(name string) string { return strings.Replace(thursday, "Thursday", name, 1) }

// drive moves a frozen clock a second at a time until the event has ended.
func (c *caller) drive(id string) map[string]any {
	c.t.Helper()
	for {
		if got := c.event(id); got["status"] == "SUCCEEDED" || got["status"] == "FAILED" || c.t.Failed() {
			return got
		}
		c.srv.Advance(time.Second)
	}
}

// leaseEnds is when the lease of the server's one task is over.
func (c *caller) leaseEnds() time.Time {
	c.t.Helper()
	snap, err := c.srv.Snapshot()
	if err != nil {
		c.t.Fatal(err)
	}
	var state struct {
		Tasks []struct{ Lease struct{ Expires time.Time } } `json:"tasks"`
	}
	if err := json.Unmarshal(snap, &state); err != nil || len(state.Tasks) != 1 {
		c.t.Fatalf("%d tasks, %v", len(state.Tasks), err)
	}
	return state.Tasks[0].Lease.Expires
}

// overtaken leaves a runner standing at a point while another one, which got
// its lease, ends the task.
func (c *caller) overtaken(at mockserver.Point) (old *mockserver.Armed, id string) {
	c.t.Helper()
	old = c.srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Point: at})
	id = c.infers("k", thursday)
	c.struck(old, 1)
	c.srv.Advance(31 * time.Second)
	c.whole(id, "k")
	return old, id
}

// unchanged releases a runner that lost its lease, lets another write go all
// the way after it, and asserts that the task is as it was.
func (c *caller) unchanged(old *mockserver.Armed, id string) {
	c.t.Helper()
	before, history := c.do("GET", "/v1/events/"+id, "").body, states(c.srv, "k")
	old.Release()
	c.whole(c.infers("after", day("Sunday")), "after")
	if after := c.do("GET", "/v1/events/"+id, "").body; string(after) != string(before) || states(c.srv, "k") != history {
		c.t.Errorf("event\n%sbecame\n%shistory %s, then %s", before, after, history, states(c.srv, "k"))
	}
	c.whole(id, "k")
}

// lost sends a write and gives the error of an answer that did not come whole.
func (c *caller) lost(key, body string) error {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.srv.URL+"/v1/memories", strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+c.srv.FishMemKey)
	req.Header.Set("Idempotency-Key", key)
	req.GetBody = nil // net/http must not send it again by itself
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.ReadAll(res.Body)
	return err
}
