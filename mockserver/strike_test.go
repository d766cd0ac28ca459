package mockserver_test

import (
	"context"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/mockserver"
)

func TestAFaultThatNeverStruckIsTold(t *testing.T) {
	t.Parallel()
	tb := &recorder{}
	srv := mockserver.Run(tb)
	c := newCaller(t, srv)
	srv.Arm(mockserver.Fault{Kind: mockserver.DropResponse, Key: "note-1"})
	runner := srv.Arm(mockserver.Fault{Kind: mockserver.KillRunner, Point: mockserver.AfterPlan, Key: "note-0001"})
	srv.Arm(mockserver.Fault{Kind: mockserver.Reset, Route: "GET /nowhere"}).Disarm()
	c.do("POST", "/memory/add", note)

	srv.FaultsFired(tb)
	if len(tb.errors) != 1 || !strings.Contains(tb.errors[0], `drop_response, key "note-1" never struck`) || !strings.Contains(tb.errors[0], "[note-0001]") {
		t.Errorf("told %q", tb.errors)
	}
	if got := srv.Unfired(); len(got) != 1 || got[0].Key != "note-1" || runner.Fired() != 1 {
		t.Errorf("unfired %v", got)
	}
	tb.end()
	if len(tb.logs) != 1 || !strings.Contains(tb.logs[0], "never struck") {
		t.Errorf("logged %q", tb.logs)
	}
}

func TestStrikesNameWhatWasStruck(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	srv.Arm(mockserver.Fault{Kind: mockserver.Status, Route: "POST /memory/add"})
	srv.Arm(mockserver.Fault{Kind: mockserver.ExpireLease, Point: mockserver.AfterCommit, Key: "note-0001"})
	srv.Arm(mockserver.Fault{Kind: mockserver.FailProjection, Key: "v"})
	srv.Arm(mockserver.Fault{Kind: mockserver.ExhaustCredits, Key: "broke"})
	c.want(c.do("POST", "/memory/add", note), 503, "SERVICE_UNAVAILABLE")
	c.want(c.do("POST", "/memory/add", note), 201, "")
	c.want(c.do("POST", "/v1/memories", infer, "Idempotency-Key", "broke"), 402, "INSUFFICIENT_CREDITS")
	c.want(c.do("POST", "/v1/memories", `{"content":"x","user_id":"sam","infer":false}`, "Idempotency-Key", "v"), 200, "")
	srv.FaultsFired(t) // also the one of a task that is redacted already

	got := srv.Strikes()
	at := func(k mockserver.Kind) mockserver.Strike {
		i := slices.IndexFunc(got, func(s mockserver.Strike) bool { return s.Fault == k })
		if i < 0 {
			t.Fatalf("%s is not among %+v", k, got)
		}
		return got[i]
	}
	task, _ := srv.TaskByClientRef("acme", "note-0001")
	if s := at(mockserver.ExpireLease); s.TaskID != task.ID || s.Key != "note-0001" || s.Point != mockserver.AfterCommit || s.Request != 0 {
		t.Errorf("%+v", s)
	}
	if s := at(mockserver.Status); s.Request != 1 || s.Key != "note-0001" || s.TaskID != "" {
		t.Errorf("%+v", s)
	}
	if s := at(mockserver.ExhaustCredits); s.Request != 3 || s.Key != "broke" {
		t.Errorf("%+v", s)
	}
	srv.Sent(t, mockserver.Match{Key: "broke", Fault: mockserver.ExhaustCredits, Times: 1})
	tb := &recorder{}
	srv.Sent(tb, mockserver.Match{Key: "note-0001", Times: 9})
	if len(tb.errors) != 1 || !strings.Contains(tb.errors[0], "expire_lease at after_commit struck "+task.ID) {
		t.Errorf("a failure does not tell what happened behind the requests: %q", tb.errors)
	}
	if srv.Reset(); len(srv.Strikes()) != 0 {
		t.Error("Reset kept the strikes")
	}
}

func TestFaultsThatCanNeverStrikeAreRefused(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	for name, f := range map[string]mockserver.Fault{
		"kind":               {Kind: "gremlin"},
		"point":              {Kind: mockserver.KillRunner, Point: "after_plna"},
		"point of a status":  {Kind: mockserver.Status, Point: mockserver.AfterPlan},
		"route of a task":    {Kind: mockserver.KillRunner, Route: "POST /memory/add"},
		"route":              {Kind: mockserver.Reset, Route: "/memory/add"},
		"times":              {Kind: mockserver.Reset, Times: -2},
		"skip":               {Kind: mockserver.Reset, Skip: -1},
		"chance":             {Kind: mockserver.Reset, Chance: 1.5},
		"code":               {Kind: mockserver.Status, Code: 99},
		"code of a reset":    {Kind: mockserver.Reset, Code: 503},
		"delay in the past":  {Kind: mockserver.Stall, Delay: -1},
		"body of a truncate": {Kind: mockserver.Truncate, Body: "x"},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was armed", name)
				}
			}()
			srv.Arm(f)
		}()
	}
}

// A status without a code of its own has the one the wire says with it, so that
// code under test reads what it would read.
func TestAStatusFaultSpeaksTheWire(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	for _, tc := range []struct {
		fault      mockserver.Fault
		fish, sync string
	}{
		{mockserver.Fault{Code: 500}, "MEMORY_ENGINE_ERROR", "INTERNAL_ERROR"},
		{mockserver.Fault{Code: 503}, "SERVICE_UNAVAILABLE", "SERVICE_UNAVAILABLE"},
		{mockserver.Fault{Code: 402}, "INSUFFICIENT_CREDITS", "SERVICE_UNAVAILABLE"},
		{mockserver.Fault{Code: 429}, "RATE_LIMITED", "RATE_LIMIT_EXCEEDED"},
		{mockserver.Fault{Code: 429, ErrorCode: "limit_exceeded"}, "limit_exceeded", "limit_exceeded"},
		{mockserver.Fault{Code: 409, ErrorCode: "USAGE_CHARGE_CONFLICT"}, "USAGE_CHARGE_CONFLICT", "USAGE_CHARGE_CONFLICT"},
	} {
		tc.fault.Kind = mockserver.Status
		srv.Arm(tc.fault)
		c.want(c.do("POST", "/v1/memories", infer, "Idempotency-Key", "k"), tc.fault.Code, tc.fish)
		srv.Arm(tc.fault)
		c.want(c.do("POST", "/memory/add", note), tc.fault.Code, tc.sync)
	}
}

// After Close nothing of a server is left, also when it is closed in the middle
// of everything: a frozen runner, a stalled answer, a long poll, an add that
// waits. Not parallel: it counts goroutines.
func TestCloseLeavesNoGoroutine(t *testing.T) {
	for name, opts := range map[string][]mockserver.Option{"listener": nil, "in process": {mockserver.InProcess()}} {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			for range 5 {
				closeInTheMiddle(t, opts)
			}
			deadline := time.Now().Add(10 * time.Second)
			for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
				runtime.Gosched()
			}
			if now := runtime.NumGoroutine(); now > before {
				stacks := make([]byte, 1<<20)
				t.Errorf("%d goroutines, %d before\n%s", now, before, stacks[:runtime.Stack(stacks, true)])
			}
		})
	}
}

func closeInTheMiddle(t *testing.T, opts []mockserver.Option) {
	t.Helper()
	srv, err := mockserver.Start(opts...)
	if err != nil {
		t.Fatal(err)
	}
	transport := http.RoundTripper(&http.Transport{})
	if opts != nil {
		transport = srv.RoundTripper()
	}
	client, err := memwrite.New(memwrite.WithMemorySync(srv.URL, srv.MemorySyncKey), memwrite.WithFishMem(srv.URL, srv.FishMemKey),
		memwrite.WithHTTPClient(&http.Client{Transport: transport}), memwrite.WithRetryPolicy(memwrite.RetryPolicy{MaxTries: 1}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Key: "frozen", Times: -1})
	srv.Arm(mockserver.Fault{Kind: mockserver.Stall, Key: "stalled"})
	write := func(key string) (*memwrite.Receipt, error) {
		return client.AddAsync(ctx, memwrite.InferRequest{Key: memwrite.RefFromString(key), Scope: memwrite.Scope{UserID: "sam"}, Content: "I like tea a lot"})
	}
	receipt, err := write("frozen")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	for _, call := range []func() error{
		func() error { _, err := client.WaitForEvent(ctx, receipt.EventID); return err },
		func() error { _, err := write("stalled"); return err },
		func() error {
			_, err := client.Add(ctx, memwrite.AddRequest{EndUserID: "acme", Text: "We use Postgres 16.", Ref: memwrite.RefFromString("frozen")})
			return err
		},
	} {
		go func() { done <- call() }()
	}
	for len(srv.Journal()) < 4 || len(srv.Strikes()) < 3 {
		runtime.Gosched()
	}
	srv.Close()
	stop() // the wait for an event would outlast a server that is away
	_ = client.Close()
	for range 3 { // each ends; the runner that Close let go may have been quick enough for one
		<-done
	}
	if tr, ok := transport.(*http.Transport); ok {
		tr.CloseIdleConnections()
	}
}
