package sqlite

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// A topic that was added is never denied, one that was not nearly always, and
// when there are more than it has room for, none is.
func TestTopicsThatAreThereAreNeverDenied(t *testing.T) {
	t.Parallel()
	hash := func(i int) []byte {
		h := sha256.Sum256([]byte(fmt.Sprint(i)))
		return h[:16]
	}
	const there = 20_000
	f := newTopics(there, 0)
	taken := 0
	for i := range there {
		f.add(hash(i))
	}
	for i := range there {
		if !f.may(hash(i)) {
			t.Fatalf("topic %d is denied", i)
		}
		if f.may(hash(-i - 1)) {
			taken++
		}
	}
	if taken > there/100 {
		t.Errorf("%d of %d are taken for another", taken, there)
	}
	for i := range there {
		f.add(hash(there + i))
	}
	if !f.may(hash(-1)) || !f.may(hash(-2)) || !f.may(hash(-3)) {
		t.Error("it is full, and denies one")
	}
}

// What is in the file is known when it is opened, and what is added at once,
// however it came there.
func TestTopicsOfTheFileAreKnown(t *testing.T) {
	t.Parallel()
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "memwrite.db")
	now := time.Date(2026, 8, 5, 12, 0, 0, 0, time.UTC)
	w := protocol.Workspace{ID: "w", AddsPerMonth: -1, Credits: -1}
	scope := protocol.Scope{Tenant: "default", EndUser: "sam"}
	var s *Store
	similar := func(key string) int {
		t.Helper()
		rs, err := s.Similar(ctx, "w", protocol.MemorySync, scope, "fact", key, now)
		if err != nil {
			t.Fatal(err)
		}
		return len(rs)
	}
	for round := range 3 {
		var err error
		if s, err = Open(ctx, path, Options{}); err != nil {
			t.Fatal(err)
		}
		if err := s.PutWorkspace(ctx, w); err != nil {
			t.Fatal(err)
		}
		for i := range round {
			if n := similar(fmt.Sprint("self/", i)); n != 1 {
				t.Errorf("%d records of topic %d after it was opened again", n, i)
			}
		}
		key := fmt.Sprint("self/", round)
		if n := similar(key); n != 0 {
			t.Errorf("%d records of a topic that is new", n)
		}
		c := protocol.Command{Kind: protocol.MemorySyncAdd, Scope: scope, Text: "raw"}
		task, _, err := s.Accept(ctx, protocol.Accept(protocol.Proposal{Workspace: w, Command: &c, TaskID: fmt.Sprint("task_", round), MaxAttempts: 5, Now: now}).Claimed("r", "t", time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		set, err := protocol.FreezePlan(task, []protocol.Fact{{Text: "fact", Type: "fact", Key: key}}, make([]protocol.Judgment, 1), int64(round+1), now)
		if err == nil {
			task, err = s.Apply(ctx, set)
		}
		if err == nil {
			set, err = protocol.Commit(task, now)
		}
		if err == nil {
			_, err = s.Apply(ctx, set)
		}
		if err != nil {
			t.Fatal(err)
		}
		if n := similar(key); n != 1 {
			t.Errorf("%d records of a topic that was just added", n)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
