package protocol_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

var noon = time.Date(2026, 8, 5, 12, 0, 0, 0, time.UTC)

func infer() protocol.Command {
	return protocol.Command{Kind: protocol.Infer, Scope: protocol.Scope{UserID: "sam"}, Key: "k", Text: "text", Metadata: json.RawMessage(`{"a":1,"b":[2,3]}`)}
}

func TestFingerprintIsOfTheMeaning(t *testing.T) {
	t.Parallel()
	base := infer()
	for name, row := range map[string]struct {
		change func(*protocol.Command)
		same   bool
	}{
		"nothing":             {func(*protocol.Command) {}, true},
		"key":                 {func(c *protocol.Command) { c.Key = "other" }, true},
		"metadata order":      {func(c *protocol.Command) { c.Metadata = json.RawMessage("{ \"b\": [2, 3],\n\"a\": 1 }") }, true},
		"metadata list order": {func(c *protocol.Command) { c.Metadata = json.RawMessage(`{"a":1,"b":[3,2]}`) }, false},
		"metadata number":     {func(c *protocol.Command) { c.Metadata = json.RawMessage(`{"a":1.0,"b":[2,3]}`) }, false},
		"text":                {func(c *protocol.Command) { c.Text = "text " }, false},
		"form": {func(c *protocol.Command) {
			c.Text, c.Messages = "", []protocol.Message{{Role: "user", Content: "text"}}
		}, false},
		"scope":         {func(c *protocol.Command) { c.Scope = protocol.Scope{AgentID: "sam"} }, false},
		"mode":          {func(c *protocol.Command) { c.Kind = protocol.Verbatim }, false},
		"date spelling": {func(c *protocol.Command) { c.EventDate = "2026-08-05T00:00:00.000Z" }, false},
	} {
		c := infer()
		row.change(&c)
		if got := protocol.Fingerprint(&c) == protocol.Fingerprint(&base); got != row.same {
			t.Errorf("another %s: same %v, want %v", name, got, row.same)
		}
	}
}

func TestIdentitiesKeepTheirBoundaries(t *testing.T) {
	t.Parallel()
	hashes := map[protocol.Hash]int{}
	for i, h := range []protocol.Hash{
		protocol.CommandKey("w", "k"), protocol.CommandKey("wk", ""), protocol.CommandKey("v", "k"),
		protocol.ClientRef("w", "t", "p", "sam", "r"), protocol.ClientRef("w", "t", "", "psam", "r"), protocol.ClientRef("w", "t", "p", "sa", "mr"),
		protocol.ReplayKey("w", "t", "sam", "", "s", "x"), protocol.ReplayKey("w", "t", "sam", "s", "", "x"), protocol.ReplayKey("w", "t", "sam", "s", "x", ""),
	} {
		if j, ok := hashes[h]; ok {
			t.Errorf("%d and %d are one", i, j)
		}
		hashes[h] = i
	}
	if id := protocol.IdentityOf("w", &protocol.Command{Kind: protocol.MemorySyncAdd}); !id.Hash.IsZero() {
		t.Error("an add without a reference has an identity")
	}
}

func TestCanonical(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                            "",
		"null":                        "",
		` {"b":1,"a":{"d":2,"c":3}} `: `{"a":{"c":3,"d":2},"b":1}`,
		`"<&>"`:                       `"<&>"`,
		"12345678901234567890123":     "12345678901234567890123",
		`{} {}`:                       `{} {}`,
		`{`:                           `{`,
	} {
		if got := string(protocol.Canonical(json.RawMessage(in))); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
}

func TestBackOff(t *testing.T) {
	t.Parallel()
	b := protocol.BackOff{Base: time.Second, Cap: time.Minute}
	for _, row := range []struct {
		attempt int
		draw    float64
		want    time.Duration
	}{{1, 0, time.Second}, {2, 0, 2 * time.Second}, {4, 0, 8 * time.Second}, {7, 0, time.Minute}, {1 << 30, 0, time.Minute}, {1, 0.5, 750 * time.Millisecond}} {
		if got := b.After(row.attempt, row.draw); got != row.want {
			t.Errorf("after attempt %d: %s, want %s", row.attempt, got, row.want)
		}
	}
	if (protocol.BackOff{}).After(1, 0) <= 0 {
		t.Error("no wait at all")
	}
}

func TestEntries(t *testing.T) {
	t.Parallel()
	a := protocol.Account{Workspace: "w", Unit: protocol.Credits}
	b := protocol.Balance{Account: a}
	for i, row := range []struct {
		kind   protocol.EntryKind
		amount int64
		want   error
	}{
		{protocol.Reserve, 1, protocol.ErrInsufficient},
		{protocol.Grant, 3, nil},
		{protocol.Reserve, 2, nil},
		{protocol.Reserve, 2, protocol.ErrInsufficient},
		{protocol.Grant, -2, protocol.ErrInsufficient},
		{protocol.Settle, 3, protocol.ErrInvariant},
		{protocol.Release, -1, protocol.ErrInvariant},
		{protocol.Settle, 2, nil},
		{protocol.Release, 2, protocol.ErrInvariant},
		{"gift", 1, protocol.ErrInvariant},
	} {
		next, err := b.Apply(protocol.Entry{ID: "e", Account: a, Kind: row.kind, Amount: row.amount})
		if !errors.Is(err, row.want) {
			t.Errorf("step %d: %v, want %v", i, err, row.want)
		}
		if err == nil {
			b = next
		}
	}
	if b.Granted != 3 || b.Available != 1 || b.Spent != 2 || b.Reserved != 0 {
		t.Errorf("%+v", b)
	}
}

func TestFrozenPlanStaysAndFailedStaysFailed(t *testing.T) {
	t.Parallel()
	w := protocol.Workspace{ID: "w", Credits: 9}
	c := infer()
	task := protocol.Accept(protocol.Proposal{Workspace: w, Command: &c, TaskID: "task_a", MaxAttempts: 2, Now: noon}).Task
	ws, claimed, write := protocol.Claim(task, "r", "t", time.Minute, noon)
	if !claimed || !write {
		t.Fatal("a due task is not claimed")
	}
	task = ws.Task
	if _, _, write := protocol.Claim(task, "r", "t2", time.Minute, noon.Add(time.Minute-1)); write {
		t.Error("a live lease is taken")
	}
	facts := []protocol.Fact{{Text: "a", Type: "fact", Key: "self/a"}}
	ws, err := protocol.FreezePlan(task, facts, make([]protocol.Judgment, 1), 0, noon)
	if err != nil {
		t.Fatal(err)
	}
	planned := ws.Task
	if _, err := protocol.FreezePlan(planned, facts, make([]protocol.Judgment, 1), 0, noon); !errors.Is(err, protocol.ErrInvariant) {
		t.Error("a plan is frozen twice")
	}
	other, _ := protocol.FreezePlan(task, []protocol.Fact{{Text: "b"}}, make([]protocol.Judgment, 1), 0, noon)
	if err := protocol.CheckStep(&planned, &other.Task); !errors.Is(err, protocol.ErrInvariant) {
		t.Error("a frozen plan changes")
	}
	if _, err := protocol.Finish(planned, noon); !errors.Is(err, protocol.ErrInvariant) {
		t.Error("finished without a commit")
	}
	failed := protocol.Failing(planned, protocol.Fail(protocol.Authorization, "no"), w, 0, noon).Task
	if failed.State != protocol.Failed {
		t.Fatal(failed.State)
	}
	if err := protocol.CheckStep(&failed, &planned); !errors.Is(err, protocol.ErrInvariant) {
		t.Error("FAILED is left without a redrive")
	}
	committed, err := protocol.Commit(planned, noon)
	if err != nil || len(committed.Records) != 1 {
		t.Fatal(err)
	}
	// Records are there: whatever fails now, it cannot end FAILED.
	if end := protocol.Failing(committed.Task, protocol.Fail(protocol.Authorization, "no"), w, 0, noon); end.Task.State != protocol.Succeeded || end.Entries[0].Kind != protocol.Settle {
		t.Errorf("ends %s", end.Task.State)
	}
}

func TestEventHoldsNothingOfTheInput(t *testing.T) {
	t.Parallel()
	c := infer()
	c.Text = "a secret"
	task := protocol.Accept(protocol.Proposal{Workspace: protocol.Workspace{ID: "w", Credits: 9}, Command: &c, TaskID: "task_a", MaxAttempts: 2, Now: noon}).Task
	out, err := json.Marshal(protocol.EventOf(task))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"a secret", `"k"`, "Lease"} {
		if strings.Contains(string(out), s) {
			t.Errorf("the event holds %q", s)
		}
	}
}
