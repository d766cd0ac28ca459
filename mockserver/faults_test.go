package mockserver_test

import (
	"errors"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/mockserver"
)

const infer = `{"content":"I like tea a lot","user_id":"sam"}`

// Whatever happens to a runner, the task ends once, with one record and one
// settlement.
func TestARunnerMayDieAnywhere(t *testing.T) {
	t.Parallel()
	points := []mockserver.Point{mockserver.BeforeInference, mockserver.AfterInference, mockserver.AfterPlan, mockserver.AfterCommit, mockserver.BeforeFinish}
	for _, kind := range []mockserver.Kind{mockserver.KillRunner, mockserver.ExpireLease} {
		for _, point := range points {
			t.Run(string(kind)+" "+string(point), func(t *testing.T) {
				t.Parallel()
				srv := mockserver.Run(t)
				c := newCaller(t, srv)
				armed := srv.Arm(mockserver.Fault{Kind: kind, Point: point, Key: "k"})
				id := c.do("POST", "/v1/memories", infer, "Idempotency-Key", "k").fields()["event_id"].(string)
				if got := c.ended(id); got["status"] != "SUCCEEDED" {
					t.Errorf("ended as %v", got)
				}
				if armed.Fired() != 1 {
					t.Errorf("struck %d times", armed.Fired())
				}
				srv.StoredOnce(t, "k")
				srv.ChargedOnce(t, "k")
				if err := srv.Check(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestWakeupsMayGetLostDoubledOrLate(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	for key, f := range map[string]mockserver.Fault{
		"lost":    {Kind: mockserver.LoseWakeup},
		"doubled": {Kind: mockserver.DuplicateWakeup},
		"late":    {Kind: mockserver.DelayWakeup, Delay: time.Hour},
		"vectors": {Kind: mockserver.FailProjection},
	} {
		f.Key = key
		srv.Arm(f)
		body := strings.Replace(infer, "tea", key, 1)
		id := c.do("POST", "/v1/memories", body, "Idempotency-Key", key).fields()["event_id"].(string)
		if got := c.ended(id); got["status"] != "SUCCEEDED" {
			t.Errorf("%s: %v", key, got)
		}
		srv.StoredOnce(t, key)
		srv.ChargedOnce(t, key)
	}
}

func TestAProviderThatFailsForGoodRefundsAndMayBeRedriven(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.Credits(2))
	c := newCaller(t, srv)
	srv.Arm(mockserver.Fault{Kind: mockserver.ProviderDown, Times: 5})
	id := c.do("POST", "/v1/memories", infer, "Idempotency-Key", "k").fields()["event_id"].(string)
	got := c.ended(id)
	if got["status"] != "FAILED" || got["attempts"] != 5.0 || got["error_code"] != "PROVIDER_UNAVAILABLE" {
		t.Fatalf("ended as %v", got)
	}
	if l := srv.Ledger(); l.Released != 1 || l.Settled != 0 || !l.Balanced || len(srv.Records()) != 0 {
		t.Fatalf("ledger %+v, %d records", l, len(srv.Records()))
	}
	if got := c.want(c.do("POST", "/v1/memories", infer, "Idempotency-Key", "k"), 202, "").fields(); got["status"] != "FAILED" {
		t.Errorf("a replay ran it again: %v", got)
	}
	srv.Arm(mockserver.Fault{Kind: mockserver.ExhaustCredits})
	c.want(c.do("POST", "/v1/operations/"+id+"/retry", ""), 402, "INSUFFICIENT_CREDITS")
	c.want(c.do("POST", "/v1/operations/"+id+"/retry", ""), 202, "")
	if got := c.ended(id); got["status"] != "SUCCEEDED" {
		t.Errorf("after the redrive: %v", got)
	}
	srv.StoredOnce(t, "k")
	srv.ChargedOnce(t, "k")
}

func TestTheClientSurvivesWhatTheConnectionDoes(t *testing.T) {
	t.Parallel()
	for _, f := range []mockserver.Fault{
		{Kind: mockserver.DropResponse},
		{Kind: mockserver.Reset},
		{Kind: mockserver.Truncate, Bytes: 10},
		{Kind: mockserver.Stall, Delay: time.Millisecond},
		{Kind: mockserver.Status, Code: 502, Body: "<html>bad gateway</html>"},
		{Kind: mockserver.IdempotencyIncomplete},
		{Kind: mockserver.ReservationInProgress},
		{Kind: mockserver.Status, Code: 429, RetryAfter: "0"},
	} {
		t.Run(string(f.Kind), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := mockserver.Run(t, mockserver.InProcess())
				client := srv.Client(t)
				f.Key = "k"
				armed := srv.Arm(f)
				event, err := client.AddAndWait(t.Context(), memwrite.InferRequest{Key: memwrite.RefFromString("k"), Scope: memwrite.Scope{UserID: "sam"}, Content: "I like tea a lot"})
				if err != nil || len(event.Results) != 1 {
					t.Fatalf("%+v, %v", event, err)
				}
				if armed.Fired() != 1 {
					t.Errorf("struck %d times", armed.Fired())
				}
				srv.StoredOnce(t, "k")
				srv.ChargedOnce(t, "k")
				srv.Sent(t, mockserver.Match{Key: "k", Fault: f.Kind, Times: 1})
			})
		})
	}
}

func TestFaultsSkipRepeatAndAreDrawnFromASeed(t *testing.T) {
	t.Parallel()
	struck := func(seed uint64) string {
		srv := mockserver.Run(t)
		c := newCaller(t, srv)
		srv.Arm(mockserver.Fault{Kind: mockserver.Status, Times: -1, Chance: 0.5, Seed: seed, Route: "GET /health"})
		var out strings.Builder
		for range 16 {
			out.WriteByte("01"[min(c.do("GET", "/health", "").status-200, 1)])
		}
		return out.String()
	}
	if a, b := struck(7), struck(7); a != b || !strings.Contains(a, "0") || !strings.Contains(a, "1") {
		t.Errorf("one seed struck %s and %s", a, b)
	}
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	srv.Arm(mockserver.Fault{Kind: mockserver.Status, Code: 500, Skip: 1, Times: 2})
	for i, want := range []int{200, 500, 500, 200} {
		if got := c.do("GET", "/health", ""); got.status != want {
			t.Errorf("call %d: %d, want %d", i, got.status, want)
		}
	}
}

func TestParallelFirstCallsMakeOneTask(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	client := srv.Client(t)
	var group sync.WaitGroup
	var stored, already sync.Map
	for i := range 32 {
		group.Go(func() {
			got, err := client.Add(t.Context(), memwrite.AddRequest{Text: "My team ships releases every Thursday.", EndUserID: "acme", Ref: memwrite.RefFromString("note-0001")})
			switch {
			case err != nil:
				t.Errorf("add: %v", err)
			case got.Outcome == memwrite.Stored:
				stored.Store(i, true)
			default:
				already.Store(i, true)
			}
		})
	}
	group.Wait()
	n := 0
	stored.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d callers were told that they stored it, want 1", n)
	}
	srv.StoredOnce(t, "note-0001")
	srv.ChargedOnce(t, "note-0001")
}

func TestCloseEndsOpenRequestsWithinASecond(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.RealTimes())
	held := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Times: -1})
	srv.Arm(mockserver.Fault{Kind: mockserver.Stall, Route: "GET /health"})
	ended := make(chan error, 2)
	for _, path := range []string{"/health", "/memory/add"} {
		go func() {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+path, nil)
			if path == "/memory/add" {
				req, _ = http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+path, strings.NewReader(note))
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("X-API-Key", srv.MemorySyncKey)
				req.Header.Set("X-End-User-ID", "acme")
			}
			res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
			if err == nil {
				_ = res.Body.Close()
				err = errors.New(res.Status)
			}
			ended <- err
		}()
	}
	for len(srv.Journal()) < 2 || held.Fired() < 1 {
		runtime.Gosched()
	}
	start := time.Now()
	srv.Close()
	srv.Close()
	if d := time.Since(start); d > time.Minute {
		t.Errorf("closing took %v", d)
	}
	for range 2 {
		<-ended
	}
}
