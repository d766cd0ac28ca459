package vector_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/extract"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/server/internal/pgtest"
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

// subject is an index as a node has it that writes and one that searches.
type subject struct {
	store         protocol.Store
	write, search protocol.Projector
	held          func() int // records in the index that searches
	// leave says that records which are forgotten leave without being told of,
	// be it at the next search.
	leave bool
}

// subjects are the indexes of the durable stores, by name.
var subjects = map[string]func(*testing.T) subject{
	"beside a SQLite file": func(t *testing.T) subject {
		dir := t.TempDir()
		s, err := sqlite.Open(t.Context(), filepath.Join(dir, "memwrite.db"), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		x := opened(t, filepath.Join(dir, "vectors"))
		return subject{s, x, x, x.Len, false}
	},
	"followed on PostgreSQL": func(t *testing.T) subject {
		url := pgtest.URL(t)
		a, b := database(t, url), database(t, url)
		x := follow(t, b)
		return subject{a, follow(t, a), x, x.Len, true}
	},
	"pgvector": func(t *testing.T) subject {
		url := pgtest.Vectors(t)
		a, b := database(t, url), database(t, url)
		return subject{a, pgvector(t, a), pgvector(t, b), func() int { return counted(t, url) }, true}
	},
}

// eachIndex runs a test on every index.
func eachIndex(t *testing.T, f func(*testing.T, subject)) {
	t.Parallel()
	for name, open := range subjects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, open(t))
		})
	}
}

// engines are one that writes, one that searches, of two nodes where the store
// allows it, and one that compares every record.
func (s subject) engines(t *testing.T) (writer, searcher, scan *engine.Engine) {
	t.Helper()
	open := func(p protocol.Projector) *engine.Engine {
		e := engine.New(engine.Config{Store: s.store, Scheduler: sched.Real(), Extractor: extract.Rules{}, Comparer: extract.Comparer{}, Projector: p,
			OnError: func(err error) { t.Error(err) }})
		t.Cleanup(e.Close)
		return e
	}
	writer, searcher, scan = open(s.write), open(s.search), open(nil)
	if err := writer.PutWorkspace(t.Context(), protocol.Workspace{ID: "w", AddsPerMonth: -1, Credits: -1}); err != nil {
		t.Fatal(err)
	}
	writer.Start()
	return writer, searcher, scan
}

// A search through an index answers what one without it answers: the same
// records with the same scores in the same order, whatever the limit, the scope
// and the filter, before and after records are forgotten, by this node or
// another.
func TestTheIndexAnswersLikeTheScan(t *testing.T) {
	eachIndex(t, answersLikeTheScan)
}

func answersLikeTheScan(t *testing.T, sub subject) {
	ctx, s := t.Context(), sub.store
	e, searcher, scan := sub.engines(t)

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
	eventually(t, func() bool { // search knows them all
		snap, err := s.Snapshot(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return len(snap.Records) > 100 && !slices.ContainsFunc(snap.Records, func(r protocol.Record) bool { return !r.Projected })
	})

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
			got, err := searcher.Search(ctx, q, query, limit, keep)
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
	before := sub.held()
	told, behind := 0, 0
	for i, r := range snap.Records {
		switch i % 6 {
		case 0:
			err = e.Forget(ctx, r)
			told++
		case 3:
			err = s.PutRecord(ctx, r.Forget(time.Now()))
			behind++
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if !sub.leave && sub.held() != before-told {
		t.Errorf("the index holds %d, want %d", sub.held(), before-told)
	}
	compare()
	switch {
	case sub.leave && sub.held() != before-told-behind:
		t.Errorf("the index holds %d, want %d", sub.held(), before-told-behind)
	case sub.held() >= before-told:
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
	eachIndex(t, supersededLeave)
}

func supersededLeave(t *testing.T, in subject) {
	ctx := t.Context()
	e, searcher, _ := in.engines(t)
	q := protocol.RecordQuery{Workspace: "w", Wire: protocol.MemorySync, Scope: protocol.Scope{Tenant: "default", EndUser: "sam"}}
	for i, name := range []string{"Samuel", "Maximilian"} {
		c := protocol.Command{Kind: protocol.MemorySyncAdd, Scope: q.Scope, Text: "My name is " + name + ".", ClientRef: fmt.Sprint("r", i)}
		sub, err := e.Submit(ctx, "w", c)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, func() bool {
			if sub.Task, err = e.Task(ctx, "w", sub.Task.ID); err != nil {
				t.Fatal(err)
			}
			return sub.Task.State == protocol.Succeeded
		})
		m, err := searcher.Search(ctx, q, "name", 5, nil)
		if err != nil || len(m) != 1 || !strings.Contains(m[0].Record.Text, name) || in.held() != 1 {
			t.Fatalf("%d matches, %d in the index, %v", len(m), in.held(), err)
		}
	}
}
