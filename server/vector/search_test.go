package vector_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/extract"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/server/sqlite"
)

var words = strings.Fields("tea coffee release releases thursday team peanuts allergic paris train house garden deploys database postgres index running marathon guitar lessons")

func sentence(rng *rand.Rand, n int) string {
	var out []string
	for range n {
		out = append(out, words[rng.IntN(len(words))])
	}
	return strings.Join(out, " ")
}

// A search through the index answers what one without it answers: the same
// records with the same scores in the same order, whatever the limit, the scope
// and the filter, before and after records are forgotten.
func TestTheIndexAnswersLikeTheScan(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	s, err := sqlite.Open(ctx, filepath.Join(dir, "memwrite.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	x := opened(t, filepath.Join(dir, "vectors"))
	config := engine.Config{Store: s, Scheduler: sched.Real(), Extractor: extract.Rules{}, Comparer: extract.Comparer{}, OnError: func(err error) { t.Error(err) }}
	scan := engine.New(config) // it only reads
	defer scan.Close()
	config.Projector = x
	e := engine.New(config)
	defer e.Close()
	if err := e.PutWorkspace(ctx, protocol.Workspace{ID: "w", AddsPerMonth: -1, Credits: -1}); err != nil {
		t.Fatal(err)
	}
	e.Start()

	rng := rand.New(rand.NewPCG(1, 2))
	users, runs := []string{"sam", "kim", "ada"}, []string{"", "one", "two"}
	for i := range 60 {
		c := protocol.Command{Kind: protocol.Verbatim, Key: fmt.Sprint("k", i), Scope: protocol.Scope{UserID: users[rng.IntN(3)], RunID: runs[rng.IntN(3)]}}
		for range 1 + rng.IntN(6) {
			c.Messages = append(c.Messages, protocol.Message{Role: "user", Content: sentence(rng, 1+rng.IntN(4))})
		}
		if _, err := e.Submit(ctx, "w", c); err != nil {
			t.Fatal(err)
		}
	}
	for { // until search knows them all
		snap, err := s.Snapshot(ctx)
		if err != nil {
			t.Fatal(err)
		}
		pending := 0
		for _, r := range snap.Records {
			if !r.Projected {
				pending++
			}
		}
		if pending == 0 && len(snap.Records) > 100 {
			break
		}
		if err := sched.Sleep(ctx, sched.Real(), 5*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}

	compared := 0
	compare := func() {
		t.Helper()
		for range 150 {
			q := protocol.RecordQuery{Workspace: "w", Wire: protocol.FishMem, Scope: protocol.Scope{UserID: users[rng.IntN(3)], RunID: runs[rng.IntN(3)]}}
			if rng.IntN(5) == 0 {
				q.Scope = protocol.Scope{RunID: "one"}
			}
			query, limit := sentence(rng, 1+rng.IntN(3)), rng.IntN(30)
			var keep func(protocol.Record) bool
			if rng.IntN(2) == 0 {
				keep = func(r protocol.Record) bool { return r.ID[len(r.ID)-1]%4 == 0 }
			}
			want, err := scan.Search(ctx, q, query, limit, keep)
			if err != nil {
				t.Fatal(err)
			}
			got, err := e.Search(ctx, q, query, limit, keep)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(want) {
				t.Fatalf("%q of %+v to %d: %d, want %d", query, q.Scope, limit, len(got), len(want))
			}
			for i := range got {
				if got[i].Record.ID != want[i].Record.ID || got[i].Score != want[i].Score {
					t.Fatalf("%q of %+v to %d: place %d is %s at %v, want %s at %v", query, q.Scope, limit, i, got[i].Record.ID, got[i].Score, want[i].Record.ID, want[i].Score)
				}
				compared++
			}
		}
	}
	compare()

	// Half by the engine, which tells the index, and half behind its back.
	snap, err := s.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	before := x.Len()
	forgotten := 0
	for i, r := range snap.Records {
		switch i % 6 {
		case 0:
			err = e.Forget(ctx, r)
			forgotten++
		case 3:
			err = s.PutRecord(ctx, r.Forget(time.Now()))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if x.Len() != before-forgotten {
		t.Errorf("the index holds %d, want %d", x.Len(), before-forgotten)
	}
	compare()
	if x.Len() >= before-forgotten {
		t.Error("searches met forgotten records and left them in the index")
	}
	if compared < 1000 {
		t.Errorf("only %d matches were compared", compared)
	}
	if err := e.Check(ctx); err != nil {
		t.Error(err)
	}
}

// A record whose place another one takes leaves the index when that one comes.
func TestSupersededRecordsLeave(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	s, err := sqlite.Open(ctx, filepath.Join(dir, "memwrite.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	x := opened(t, filepath.Join(dir, "vectors"))
	e := engine.New(engine.Config{Store: s, Scheduler: sched.Real(), Extractor: extract.Rules{}, Comparer: extract.Comparer{}, Projector: x,
		OnError: func(err error) { t.Error(err) }})
	defer e.Close()
	if err := e.PutWorkspace(ctx, protocol.Workspace{ID: "w", AddsPerMonth: -1, Credits: -1}); err != nil {
		t.Fatal(err)
	}
	e.Start()
	q := protocol.RecordQuery{Workspace: "w", Wire: protocol.MemorySync, Scope: protocol.Scope{Tenant: "default", EndUser: "sam"}}
	for i, name := range []string{"Samuel", "Maximilian"} {
		c := protocol.Command{Kind: protocol.MemorySyncAdd, Scope: q.Scope, Text: "My name is " + name + ".", ClientRef: fmt.Sprint("r", i)}
		sub, err := e.Submit(ctx, "w", c)
		if err != nil {
			t.Fatal(err)
		}
		for sub.Task.State != protocol.Succeeded {
			if err := sched.Sleep(ctx, sched.Real(), 5*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			if sub.Task, err = e.Task(ctx, "w", sub.Task.ID); err != nil {
				t.Fatal(err)
			}
		}
		m, err := e.Search(ctx, q, "name", 5, nil)
		if err != nil || len(m) != 1 || !strings.Contains(m[0].Record.Text, name) || x.Len() != 1 {
			t.Fatalf("%d matches, %d in the index, %v", len(m), x.Len(), err)
		}
	}
}
