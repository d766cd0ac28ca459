package mockserver_test

import (
	"sync/atomic"
	"testing"

	"github.com/memwrite/memwrite-go/mockserver"
)

// counted lets the server's extractor give one fact and count its calls.
func counted(srv *mockserver.Server) *atomic.Int64 {
	n := &atomic.Int64{}
	srv.SetScript(func(string) ([]mockserver.Fact, bool) {
		n.Add(1)
		return []mockserver.Fact{{Text: kept, Key: "releases"}}, true
	})
	return n
}

// killed loses one runner at a point and gives how often the model was asked.
func killed(t *testing.T, at mockserver.Point) int64 {
	t.Helper()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	asked := counted(srv)
	armed := srv.Arm(mockserver.Fault{Kind: mockserver.KillRunner, Point: at})
	id := c.infers("k", thursday)
	got := c.whole(id, "k")
	if armed.Fired() != 1 || got["attempts"] != 2.0 || len(got["results"].([]any)) != 1 {
		t.Errorf("killed %d runners: %v", armed.Fired(), got)
	}
	if got := states(srv, "k"); got != "PENDING RUNNING RUNNING SUCCEEDED" {
		t.Errorf("history %s", got)
	}
	return asked.Load()
}

func TestReleaseRunnerKilledBeforeInference(t *testing.T) {
	t.Parallel()
	if n := killed(t, mockserver.BeforeInference); n != 1 {
		t.Errorf("the model was asked %d times, want 1", n)
	}
}

// Before a plan is frozen the answer is lost with the runner, and the model is
// asked once more.
func TestReleaseRunnerKilledAfterInference(t *testing.T) {
	t.Parallel()
	if n := killed(t, mockserver.AfterInference); n != 2 {
		t.Errorf("the model was asked %d times, want 2", n)
	}
}

// From the frozen plan on it is never asked again.
func TestReleaseRunnerKilledAfterTheCanonicalCommit(t *testing.T) {
	t.Parallel()
	for _, at := range []mockserver.Point{mockserver.AfterPlan, mockserver.AfterCommit, mockserver.BeforeFinish} {
		if n := killed(t, at); n != 1 {
			t.Errorf("%s: the model was asked %d times, want 1", at, n)
		}
	}
}

// The limit of attempts cannot take back what is committed.
func TestReleaseFiveCrashesAfterTheCanonicalCommitEndSucceeded(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.Credits(2))
	c := newCaller(t, srv)
	asked := counted(srv)
	armed := srv.Arm(mockserver.Fault{Kind: mockserver.KillRunner, Point: mockserver.AfterCommit, Times: 5})
	id := c.infers("k", thursday)
	got := c.whole(id, "k")
	if armed.Fired() != 5 || got["attempts"] != 5.0 || asked.Load() != 1 {
		t.Errorf("%d crashes, asked %d times: %v", armed.Fired(), asked.Load(), got)
	}
	if l := srv.Ledger(); l.Settled != 1 || l.Released != 0 || l.Open != 0 {
		t.Errorf("ledger %+v", l)
	}
	for len(srv.Records()) != 1 || !srv.Records()[0].Projected {
		c.do("GET", "/v1/health", "") // repair finishes the projection behind it
	}
	c.whole(id, "k")
}
