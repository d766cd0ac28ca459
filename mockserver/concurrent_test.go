package mockserver_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/memwrite/memwrite-go/mockserver"
)

// atOnce sends the bodies in one moment under one key and gives the answers.
func (c *caller) atOnce(key string, bodies []string) []reply {
	c.t.Helper()
	out := make([]reply, len(bodies))
	start := make(chan struct{})
	var group sync.WaitGroup
	for i, body := range bodies {
		group.Go(func() {
			<-start
			out[i] = c.do("POST", "/v1/memories", body, "Idempotency-Key", key)
		})
	}
	close(start)
	group.Wait()
	return out
}

func TestSixtyFourIdenticalPostsAreOneTask(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	asked := counted(srv)
	bodies := make([]string, 64)
	for i := range bodies {
		bodies[i] = thursday
	}
	id, fresh := "", 0
	for _, got := range c.atOnce("k", bodies) {
		event, _ := c.want(got, 202, "").fields()["event_id"].(string)
		if id == "" {
			id = event
		}
		if event != id || event == "" {
			t.Errorf("receipts of %q and %q", id, event)
		}
		if got.header.Get("Idempotent-Replayed") == "" {
			fresh++
		}
	}
	c.whole(id, "k")
	if l := srv.Ledger(); len(srv.Tasks()) != 1 || asked.Load() != 1 || l.Reserved != 1 || fresh != 1 || len(srv.Records()) != 1 {
		t.Errorf("%d tasks, %d inferences, %d first answers, ledger %+v", len(srv.Tasks()), asked.Load(), fresh, l)
	}
	srv.Sent(t, mockserver.Match{Route: "POST /v1/memories", Key: "k", Times: 64})
}

func TestSixtyFourPostsOfWhichHalfDifferInOneByte(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	asked := counted(srv)
	bodies := make([]string, 64)
	for i := range bodies {
		bodies[i] = thursday
		if i%2 == 1 {
			bodies[i] = strings.Replace(thursday, "Thursday.", "Thursday!", 1)
		}
	}
	events := map[string]int{}
	winner, conflicts := -1, 0
	for i, got := range c.atOnce("k", bodies) {
		if got.status == 409 {
			c.want(got, 409, "IDEMPOTENCY_CONFLICT")
			conflicts++
			continue
		}
		event, _ := c.want(got, 202, "").fields()["event_id"].(string)
		events[event]++
		if winner >= 0 && winner != i%2 {
			t.Error("both commands were accepted under one key")
		}
		winner = i % 2
	}
	if len(events) != 1 || conflicts != 32 {
		t.Fatalf("events %v, %d conflicts", events, conflicts)
	}
	for id, n := range events {
		if n != 32 {
			t.Errorf("%d receipts, want 32", n)
		}
		c.whole(id, "k")
	}
	if l := srv.Ledger(); len(srv.Tasks()) != 1 || asked.Load() != 1 || l.Reserved != 1 || len(srv.Records()) != 1 {
		t.Errorf("%d tasks, %d inferences, ledger %+v", len(srv.Tasks()), asked.Load(), l)
	}
}
