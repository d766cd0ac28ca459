package mockserver_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/mockserver"
)

// bulk sends so many different items in one call and gives what became of each.
func (c *caller) bulk(name string, n int) []string {
	c.t.Helper()
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(`{"text":"We use the %s tool number %d.","source":"%d"}`, name, i, i)
	}
	got := c.want(c.do("POST", "/memory/bulk-add", `{"deduplicate":false,"items":[`+strings.Join(items, ",")+`]}`), 207, "").fields()
	out := make([]string, 0, n)
	for _, r := range got["results"].([]any) {
		f := r.(map[string]any)
		word := f["status"].(string)
		if reason, _ := f["reason"].(string); reason != "" {
			word += " " + reason
		}
		out = append(out, word)
	}
	return out
}

// charged asserts what the ledger says of the writes so far.
func (c *caller) charged(reserved, settled, released int) {
	c.t.Helper()
	if l := c.srv.Ledger(); l.Reserved != reserved || l.Settled != settled || l.Released != released {
		c.t.Errorf("ledger %+v, want %d reserved, %d settled, %d released", l, reserved, settled, released)
	}
	c.sound()
}

func (c *caller) became(got []string, want ...string) {
	c.t.Helper()
	if strings.Join(got, "; ") != strings.Join(want, "; ") {
		c.t.Errorf("items became %q, want %q", got, want)
	}
}

func TestABulkCallIsChargedOnce(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.Adds(2, true))
	c := newCaller(t, srv)
	c.became(c.bulk("hammer", 3), "created", "created", "created")
	c.charged(1, 1, 0)
	c.became(c.bulk("saw", 2), "created", "created")
	c.charged(2, 2, 0)
	c.became(c.bulk("drill", 2), "skipped limit_exceeded", "skipped limit_exceeded")
	c.charged(2, 2, 0)
	if n := len(srv.Records()); n != 5 {
		t.Errorf("%d records", n)
	}
	// What pays for what is known after a restart.
	snap, err := srv.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Restore(snap); err != nil {
		t.Fatal(err)
	}
	c.charged(2, 2, 0)
}

func TestABulkCallIsCarriedByTheFirstItemThatSucceeds(t *testing.T) {
	t.Parallel()
	const failed = "rejected extraction did not finish"
	for _, row := range []struct {
		name                        string
		skip, times                 int // attempts that end in invalid output
		want                        []string
		reserved, settled, released int
	}{
		{"the first fails", 0, 1, []string{failed, "created", "created"}, 2, 1, 1},
		{"the first two fail", 0, 2, []string{failed, failed, "created"}, 3, 1, 2},
		{"one behind it fails", 1, 1, []string{"created", failed, "created"}, 1, 1, 0},
		{"all fail", 0, 3, []string{failed, failed, failed}, 3, 0, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			srv := mockserver.Run(t)
			c := newCaller(t, srv)
			srv.Arm(mockserver.Fault{Kind: mockserver.ProviderInvalid, Skip: row.skip, Times: row.times})
			c.became(c.bulk("hammer", 3), row.want...)
			c.charged(row.reserved, row.settled, row.released)
		})
	}
}

// Whoever carries the charge, or is paid for, is carried on after a crash, and
// is not charged for it.
func TestABulkCallIsChargedOnceThroughCrashes(t *testing.T) {
	t.Parallel()
	for _, point := range []mockserver.Point{mockserver.BeforeInference, mockserver.AfterPlan, mockserver.AfterCommit, mockserver.BeforeFinish} {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			srv := mockserver.Run(t)
			c := newCaller(t, srv)
			srv.Arm(mockserver.Fault{Kind: mockserver.KillRunner, Point: point, Times: 2})
			srv.Arm(mockserver.Fault{Kind: mockserver.KillRunner, Point: point, Skip: 1})
			c.became(c.bulk("hammer", 3), "created", "created", "created")
			c.charged(1, 1, 0)
		})
	}
}

// An item that does not end in time is the last one that is tried, so that none
// is paid for by one that may still fail.
func TestABulkCallStopsAtAnItemThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	const late, untried = "rejected extraction did not finish", "rejected the call took too long; send the item again"
	for _, row := range []struct {
		skip             int
		want             []string
		reserved, before int // settled when the call is answered
	}{
		{0, []string{late, untried, untried}, 1, 0},
		{1, []string{"created", late, untried}, 1, 1},
	} {
		srv := mockserver.Run(t, mockserver.InlineWait(300*time.Millisecond), mockserver.RealTimes())
		c := newCaller(t, srv)
		held := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Skip: row.skip})
		c.became(c.bulk("hammer", 3), row.want...)
		c.charged(row.reserved, row.before, 0)
		held.Release()
		for len(srv.Records()) != row.skip+1 {
			c.do("GET", "/health", "")
		}
		for srv.Ledger().Open != 0 {
			c.do("GET", "/health", "")
		}
		c.charged(1, 1, 0)
	}
}

// A quota of nothing refuses the first write like any other, in each of its
// forms, and keeps nothing of it.
func TestAQuotaOfExactlyNothing(t *testing.T) {
	t.Parallel()
	const text = `{"text":"I am allergic to peanuts.","client_ref":"a"}`
	for _, strict := range []bool{false, true} {
		srv := mockserver.Run(t, mockserver.Adds(0, strict), mockserver.Credits(0))
		c := newCaller(t, srv)
		turn := fmt.Sprintf(`{"tenant_id":%q,"user_id":"acme","role":"user","text":"I am allergic to peanuts."}`, srv.Workspace)
		if strict {
			c.want(c.do("POST", "/memory/add", text), 429, "limit_exceeded")
			c.want(c.do("POST", "/v1/memory/add_turn", turn), 429, "limit_exceeded")
		} else {
			c.want(c.do("POST", "/memory/add", text), 200, "")
			if got := c.want(c.do("POST", "/v1/memory/add_turn", turn), 201, "").fields(); got["processing_status"] != "skipped" {
				t.Errorf("a turn became %v", got)
			}
		}
		c.became(c.bulk("hammer", 2), "skipped limit_exceeded", "skipped limit_exceeded")
		c.want(c.do("POST", "/v1/memories", thursday, "Idempotency-Key", "k"), 402, "INSUFFICIENT_CREDITS")
		c.want(c.do("POST", "/v1/memories", `{"content":"x","user_id":"sam","infer":false}`, "Idempotency-Key", "k"), 402, "INSUFFICIENT_CREDITS")
		c.charged(0, 0, 0)
		if n := len(srv.Tasks()); n != 0 {
			t.Errorf("%d tasks", n)
		}
	}
}
