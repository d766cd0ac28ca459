package mockserver_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/mockserver"
)

// Vexa-ai/vexa#519: each emission had an event id of its own. The id is on the
// receipt, and a crash between commit and announcement does not change it.
func TestB53_AnEventKeepsItsIDThroughACrash(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	srv.Arm(mockserver.Fault{Kind: mockserver.KillRunner, Point: mockserver.AfterCommit})
	id := c.infers("k", thursday)
	c.whole(id, "k")
	list := c.want(c.do("GET", "/v1/events", ""), 200, "").fields()["results"].([]any)
	if len(list) != 1 || list[0].(map[string]any)["id"] != id {
		t.Errorf("events %v, want the one %s", list, id)
	}
}

// opendefender/OpenRisk#344: the event was written after the business commit
// and lost in between. Whatever a crash leaves, event and task agree.
func TestB55_NoCommitWithoutItsEvent(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.RealTimes())
	c := newCaller(t, srv)
	held := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Point: mockserver.AfterCommit})
	id := c.infers("k", thursday)
	c.struck(held, 1)
	snap, err := srv.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	after := mockserver.Run(t, mockserver.RealTimes())
	if err := after.Restore(snap); err != nil {
		t.Fatal(err)
	}
	c = newCaller(t, after)
	if got := c.event(id); got["status"] != "RUNNING" || len(after.Records()) != 1 {
		t.Errorf("%d records, %v", len(after.Records()), got)
	}
	after.Advance(31 * time.Second)
	c.whole(id, "k")
}

// kubernetes#125761: a clock that jumped an hour made two leaders. The runner
// that stood still through the jump writes nothing.
func TestB56_AClockThatJumpsMakesNoTwoOwners(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.RealTimes())
	c := newCaller(t, srv)
	old := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Point: mockserver.AfterInference})
	id := c.infers("k", thursday)
	c.struck(old, 1)
	srv.Advance(time.Hour)
	if got := c.whole(id, "k"); got["attempts"] != 2.0 {
		t.Errorf("%v", got)
	}
	c.unchanged(old, id)
}

// wiremock#456: a step that was to be served once was served twice.
func TestB62_AFaultForOnceStrikesOneOfManyParallelCalls(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	armed := srv.Arm(mockserver.Fault{Kind: mockserver.Status, Code: 503})
	status := inParallel(32, func() int { return c.do("GET", "/v1/health", "").status })
	if status[503] != 1 || status[200] != 31 || armed.Fired() != 1 {
		t.Errorf("answers %v, struck %d times", status, armed.Fired())
	}
}

// wiremock#48: state of one test was left to the next.
func TestB63_ResetLeavesNothing(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	for range 3 {
		c.whole(c.infers("k", thursday), "k")
		c.want(c.do("POST", "/memory/add", note), 201, "")
		srv.Arm(mockserver.Fault{Kind: mockserver.Status, Times: -1, Route: "GET /nowhere"})
		srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Times: -1})
		c.infers("held", thursday)
		srv.Reset()
		if l := srv.Ledger(); len(srv.Tasks())+len(srv.Records())+len(srv.Journal())+l.Reserved != 0 {
			t.Fatalf("after a reset: %v %v %+v", srv.Tasks(), srv.Records(), l)
		}
	}
}

// atlasdb#1811: fixed ports collided.
func TestB64_ManyServersHavePortsOfTheirOwn(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	urls := map[string]bool{}
	var servers []*mockserver.Server
	var group sync.WaitGroup
	for range 200 {
		group.Go(func() {
			srv, err := mockserver.Start()
			if err != nil {
				t.Errorf("start: %v", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			urls[srv.URL] = true
			servers = append(servers, srv)
		})
	}
	group.Wait()
	if len(urls) != 200 {
		t.Errorf("%d addresses, want 200", len(urls))
	}
	for _, srv := range servers {
		srv.Close()
	}
}

// observed is a test of its own, which tells what is said to it and when.
type observed struct {
	mu       sync.Mutex
	cleanups []func()
	said     []string
}

func (o *observed) Helper()                           {}
func (o *observed) Logf(format string, args ...any)   { o.say(format, args...) }
func (o *observed) Errorf(format string, args ...any) { o.say(format, args...) }
func (o *observed) Fatalf(format string, args ...any) { o.say(format, args...) }

func (o *observed) Cleanup(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cleanups = append(o.cleanups, f)
}

func (o *observed) say(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.said = append(o.said, fmt.Sprintf(format, args...))
}

func (o *observed) end() {
	for i := len(o.cleanups) - 1; i >= 0; i-- {
		o.cleanups[i]()
	}
}

// google-cloud-go#1191: a fake logged after its test had ended.
func TestB66_NothingIsSaidAfterATestEnded(t *testing.T) {
	t.Parallel()
	inner := &observed{}
	srv := mockserver.Run(inner)
	c := newCaller(t, srv)
	held := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner})
	c.infers("k", thursday)
	c.struck(held, 1)
	inner.end()
	srv.Advance(time.Hour)
	held.Release()
	if len(inner.said) != 0 {
		t.Errorf("it said %q", inner.said)
	}
}

// go-cloud#1686: a knob of the package raced. Options are each server's own.
func TestB67_ServersShareNoKnob(t *testing.T) {
	t.Parallel()
	poor, rich := mockserver.Run(t, mockserver.Credits(0)), mockserver.Run(t)
	p, r := newCaller(t, poor), newCaller(t, rich)
	poor.Freeze()
	poor.Arm(mockserver.Fault{Kind: mockserver.ProviderDown, Times: -1})
	p.want(p.do("POST", "/v1/memories", thursday, "Idempotency-Key", "k"), 402, "INSUFFICIENT_CREDITS")
	r.whole(r.infers("k", thursday), "k")
	if len(poor.Records()) != 0 || len(poor.Journal()) != 1 {
		t.Errorf("%d records and %d requests at the other server", len(poor.Records()), len(poor.Journal()))
	}
}

// golang/go#16555: closing blocked on open streams. The stream here is a held
// long poll.
func TestB68_CloseEndsAHeldPoll(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.RealTimes())
	srv.Freeze()
	c := newCaller(t, srv)
	held := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner})
	id := c.infers("k", thursday)
	c.struck(held, 1)
	ended := make(chan error, 1)
	go func() {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/v1/events/"+id, nil)
		req.Header.Set("Authorization", "Bearer "+srv.FishMemKey)
		req.Header.Set("Prefer", "wait=25")
		res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err == nil {
			err = res.Body.Close()
		}
		ended <- err
	}()
	for polls := 0; polls == 0; {
		for _, r := range srv.Journal() {
			if r.Header.Get("Prefer") != "" {
				polls++
			}
		}
	}
	srv.Freeze() // what is held does not end by itself
	start := time.Now()
	srv.Close()
	<-ended
	if d := time.Since(start); d > time.Minute {
		t.Errorf("closing took %v", d)
	}
}

// go-github-mock#79: there was no way to close. The end of a test does.
func TestB69_TheEndOfATestClosesItsServer(t *testing.T) {
	t.Parallel()
	inner := &observed{}
	srv := mockserver.Run(inner)
	c := newCaller(t, srv)
	c.whole(c.infers("k", thursday), "k")
	inner.end()
	conn, err := net.DialTimeout("tcp", strings.TrimPrefix(srv.URL, "http://"), time.Second)
	if err == nil {
		_ = conn.Close()
		t.Error("the port is still open")
	}
	srv.Close() // a second time does nothing
}
