package mockserver_test

import (
	"strings"
	"testing"

	"github.com/memwrite/memwrite-go/mockserver"
)

// Which failures are tried again, and where it ends.
func TestFailurePolicyOnTheWire(t *testing.T) {
	t.Parallel()
	const ever = -1
	for _, row := range []struct {
		name        string
		fault       mockserver.Fault
		policy      int // InvalidOutputAttempts
		status      string
		attempts    float64
		code, class string
	}{
		{"provider timeout, then well", mockserver.Fault{Kind: mockserver.ProviderTimeout, Times: 2}, 0, "SUCCEEDED", 3, "", ""},
		{"provider timeout for good", mockserver.Fault{Kind: mockserver.ProviderTimeout, Times: ever}, 0, "FAILED", 5, "PROVIDER_TIMEOUT", "provider_timeout"},
		{"infrastructure, then well", mockserver.Fault{Kind: mockserver.ProviderDown, Times: 4}, 0, "SUCCEEDED", 5, "", ""},
		{"infrastructure for good", mockserver.Fault{Kind: mockserver.ProviderDown, Times: ever}, 0, "FAILED", 5, "PROVIDER_UNAVAILABLE", "infrastructure"},
		{"invalid output without a policy", mockserver.Fault{Kind: mockserver.ProviderInvalid}, 0, "FAILED", 1, "INVALID_EXTRACTION", "invalid_output"},
		{"invalid output under a policy", mockserver.Fault{Kind: mockserver.ProviderInvalid}, 2, "SUCCEEDED", 2, "", ""},
		{"invalid output beyond its policy", mockserver.Fault{Kind: mockserver.ProviderInvalid, Times: ever}, 2, "FAILED", 2, "INVALID_EXTRACTION", "invalid_output"},
		{"authorization", mockserver.Fault{Kind: mockserver.ProviderRefuses}, 0, "FAILED", 1, "UNAUTHORIZED", "authorization"},
		{"authorization under a policy", mockserver.Fault{Kind: mockserver.ProviderRefuses}, 3, "FAILED", 1, "UNAUTHORIZED", "authorization"},
		{"rejected input", mockserver.Fault{Kind: mockserver.ProviderRejects}, 0, "FAILED", 1, "EXTRACTION_REJECTED", "rejected"},
		{"runner lost for good", mockserver.Fault{Kind: mockserver.KillRunner, Times: ever}, 0, "FAILED", 5, "RUNNER_LOST", "interrupted"},
		{"projection for good", mockserver.Fault{Kind: mockserver.FailProjection, Times: ever}, 0, "SUCCEEDED", 5, "", ""},
		{"projection, then well", mockserver.Fault{Kind: mockserver.FailProjection, Times: 3}, 0, "SUCCEEDED", 4, "", ""},
		{"runner lost, then well", mockserver.Fault{Kind: mockserver.KillRunner, Times: 2}, 0, "SUCCEEDED", 3, "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			srv := mockserver.Run(t, mockserver.InvalidOutputAttempts(row.policy))
			c := newCaller(t, srv)
			srv.Arm(row.fault)
			id := c.infers("k", thursday)
			got := c.ended(id)
			if got["status"] != row.status || got["attempts"] != row.attempts {
				t.Fatalf("ended as %v", got)
			}
			if row.status == "SUCCEEDED" {
				c.whole(id, "k")
				return
			}
			c.refunded(id, "k")
			if got["error_code"] != row.code || got["failure_class"] != row.class {
				t.Errorf("ended as %v", got)
			}
			if l := srv.Ledger(); l.Released != 1 || l.Settled != 0 || l.Open != 0 {
				t.Errorf("ledger %+v", l)
			}
		})
	}
}

// Without credits nothing is accepted, nothing is tried and the key stays free.
func TestFailurePolicyOfCreditsOnTheWire(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	empty := srv.Arm(mockserver.Fault{Kind: mockserver.ExhaustCredits, Times: -1})
	for range 2 {
		c.want(c.do("POST", "/v1/memories", thursday, "Idempotency-Key", "k"), 402, "INSUFFICIENT_CREDITS")
	}
	if l := srv.Ledger(); len(srv.Tasks()) != 0 || l.Reserved != 0 {
		t.Errorf("%d tasks, ledger %+v", len(srv.Tasks()), l)
	}
	empty.Disarm()
	// Also for another command: a refused one has claimed no key.
	id := c.infers("k", strings.Replace(thursday, "Thursday", "Friday", 1))
	c.whole(id, "k")
}

// A conflict is the caller's mistake: no state of the first command changes it.
func TestFailurePolicyOfAConflictOnTheWire(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	held := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner})
	id := c.infers("k", thursday)
	c.struck(held, 1)
	other := strings.Replace(thursday, "Thursday", "Friday", 1)
	for range 3 {
		c.want(c.do("POST", "/v1/memories", other, "Idempotency-Key", "k"), 409, "IDEMPOTENCY_CONFLICT")
	}
	if n := len(srv.Tasks()); n != 1 {
		t.Errorf("%d tasks", n)
	}
	held.Release()
	c.whole(id, "k")
	c.want(c.do("POST", "/v1/memories", other, "Idempotency-Key", "k"), 409, "IDEMPOTENCY_CONFLICT")
	c.whole(id, "k")
}
