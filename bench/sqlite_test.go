package bench

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"

	memwrite "github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/server/sqlite"
	"github.com/memwrite/memwrite-go/server/storebench"
)

const callers = 16

func openSQLite(t *testing.T) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "memwrite.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func onSQLite(t *testing.T) *storebench.Bench {
	t.Helper()
	b, err := storebench.New(t.Context(), openSQLite(t))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// noteArgs is a job of the size of a note.
type noteArgs struct {
	User string `json:"user"`
	Key  string `json:"key"`
	Text string `json:"text"`
}

func (noteArgs) Kind() string { return "note" }

// riverOnSQLite inserts jobs as River documents it for SQLite: one connection,
// here with a log that is synced at each commit, as ours is.
func riverOnSQLite(t *testing.T) func(n int) error {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "river.db")+
		"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	driver := riversqlite.New(db)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil); err != nil {
		t.Fatal(err)
	}
	client, err := river.NewClient(driver, &river.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var last atomic.Int64
	return func(n int) error {
		return storebench.Together(callers, n, func() error {
			i := last.Add(1)
			_, err := client.Insert(t.Context(), noteArgs{fmt.Sprint("user-", i%1000), fmt.Sprint("note-", i), storebench.Text}, nil)
			return err
		})
	}
}

func TestSQLiteFigures(t *testing.T) { // not parallel: it measures time
	ctx := t.Context()
	together, alone := onSQLite(t), onSQLite(t)
	best, err := storebench.Best(*rounds,
		storebench.Side{N: 8000, Do: func(n int) error { return together.Accepts(ctx, callers, n) }},
		storebench.Side{N: 1500, Do: func(n int) error { return alone.Accepts(ctx, 1, n) }},
		storebench.Side{N: 1000, Do: riverOnSQLite(t)},
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []*storebench.Bench{together, alone} {
		if err := b.Count(ctx); err != nil {
			t.Fatal(err)
		}
	}
	storebench.Figure("sqlite.accept_vs_single", float64(best[1])/float64(best[0]), ">=", 4, " # 16 callers against one")
	storebench.Figure("sqlite.accept_vs_river", float64(best[2])/float64(best[0]), ">=", 6, " # 16 callers on each side")
	storebench.Note("sqlite.accept_per_s", float64(time.Second)/float64(best[0]), "")
	storebench.Note("sqlite.river_insert_per_s", float64(time.Second)/float64(best[2]), "")
}

// overHTTP makes whole adds with the SDK: accepted, extracted, stored, settled
// and answered.
func overHTTP(t *testing.T, n *storebench.Node) func(n int) error {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	client, err := memwrite.New(memwrite.WithMemorySync("http://"+l.Addr().String(), storebench.Key),
		memwrite.WithHTTPClient(&http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	var last atomic.Int64
	return func(n int) error {
		return storebench.Together(callers, n, func() error {
			i := last.Add(1)
			got, err := client.Add(ctx, memwrite.AddRequest{Text: "My team ships releases every Thursday.", EndUserID: fmt.Sprint("user-", i), Ref: memwrite.NewRef("note", fmt.Sprint(i))})
			if err == nil && got.Outcome != memwrite.Stored {
				err = fmt.Errorf("ended as %s", got.Outcome)
			}
			return err
		})
	}
}

func TestSQLiteHTTPFigures(t *testing.T) {
	ctx := t.Context()
	file, err := storebench.NewNode(ctx, openSQLite(t))
	if err != nil {
		t.Fatal(err)
	}
	memory, err := storebench.NewNode(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	onFile, inMemory := overHTTP(t, file), overHTTP(t, memory)
	for _, warm := range []func(int) error{onFile, inMemory} {
		if err := warm(8 * callers); err != nil {
			t.Fatal(err)
		}
	}
	// Rounds that last about as long: of two the shorter one is lucky more often.
	best, err := storebench.Best(*rounds, storebench.Side{N: 2500, Do: onFile}, storebench.Side{N: 7500, Do: inMemory})
	if err != nil {
		t.Fatal(err)
	}
	storebench.Figure("sqlite.http_vs_memory", float64(best[1])/float64(best[0]), ">=", 0.3, " # whole adds, SDK, 16 callers")
	storebench.Note("sqlite.http_add_per_s", float64(time.Second)/float64(best[0]), "")
	storebench.Note("memory.http_add_per_s", float64(time.Second)/float64(best[1]), "")
}

// The claims come last: what a million tasks left to be written to the disk would
// weigh on what comes after them.
func TestSQLiteClaimFigures(t *testing.T) {
	claimFigures(t, "sqlite", 256, onSQLite(t), onSQLite(t))
}
