package sqlite_test

import (
	"reflect"
	"testing"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/sqlite"
)

// together carries a claimed task to its end in one set, as a server does.
func together(t *testing.T, s *sqlite.Store, task protocol.Task, fact string, old ...string) string {
	t.Helper()
	first, err := s.Allot(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	set, err := protocol.FreezePlan(task, []protocol.Fact{{Text: fact, Type: "fact", Key: "self/x", Replaces: len(old) > 0}},
		[]protocol.Judgment{{Supersedes: old}}, first, noon)
	for _, step := range []func(protocol.Task) (protocol.WriteSet, error){
		func(t protocol.Task) (protocol.WriteSet, error) { return protocol.Commit(t, noon) },
		func(t protocol.Task) (protocol.WriteSet, error) { return protocol.Projected(t, noon), nil },
		func(t protocol.Task) (protocol.WriteSet, error) { return protocol.Finish(t, noon) },
	} {
		if err != nil {
			t.Fatal(err)
		}
		var next protocol.WriteSet
		if next, err = step(set.Task); err == nil {
			set = set.Then(next)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	done, err := s.Apply(t.Context(), set)
	if err != nil {
		t.Fatal(err)
	}
	return done.Result.Records[0].ID
}

// A record that was added a moment ago is given as it is in the file, and never
// as it was before it was changed.
func TestAFreshRecordIsGivenAsItIsInTheFile(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	if err := s.PutWorkspace(ctx, workspace()); err != nil {
		t.Fatal(err)
	}
	add := func(ref, fact string, old ...string) string {
		t.Helper()
		c := protocol.Command{Kind: protocol.MemorySyncAdd, Scope: protocol.Scope{Tenant: "default", EndUser: "sam"}, ClientRef: ref, Text: "raw"}
		a := protocol.Accept(protocol.Proposal{Workspace: workspace(), Command: &c, TaskID: "task_" + ref, MaxAttempts: 5, Now: noon})
		task, _, err := s.Accept(ctx, a.Claimed("runner", "token", 1<<40))
		if err != nil {
			t.Fatal(err)
		}
		return together(t, s, task, fact, old...)
	}
	read := func(id string) protocol.Record {
		t.Helper()
		r, err := s.Record(ctx, "w", id)
		if err != nil {
			t.Fatal(err)
		}
		filed, err := s.RecordByNumber(ctx, "w", r.Number)
		if err != nil || !reflect.DeepEqual(r, filed) {
			t.Fatalf("given %+v\nfiled %+v, %v", r, filed, err)
		}
		return r
	}
	first, second := add("a", "one"), add("b", "two")
	for _, id := range []string{first, second} {
		if r := read(id); !r.Projected || r.Forgotten || r.Text == "" {
			t.Errorf("%+v", r)
		}
	}
	edited := read(first)
	edited.Text = "one, edited"
	if err := s.PutRecord(ctx, edited); err != nil {
		t.Fatal(err)
	}
	if r := read(first); r.Text != edited.Text {
		t.Errorf("says %q after it was edited", r.Text)
	}
	third := add("c", "three", first, second)
	for _, id := range []string{first, second} {
		if r := read(id); !r.Forgotten || r.SupersededBy != third {
			t.Errorf("%+v", r)
		}
	}
	if r := read(third); !r.Projected {
		t.Errorf("%+v", r)
	}
	if _, err := s.Record(ctx, "other", third); err == nil {
		t.Error("another workspace reads it")
	}
}
