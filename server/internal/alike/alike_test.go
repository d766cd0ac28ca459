package alike_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/store/memory"
	"github.com/memwrite/memwrite-go/server/internal/doc"
	"github.com/memwrite/memwrite-go/server/internal/pgtest"
	"github.com/memwrite/memwrite-go/server/postgres"
	"github.com/memwrite/memwrite-go/server/sqlite"
)

func TestAllStoresAreAlike(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	first, err := postgres.Open(t.Context(), postgres.Options{URL: url, Connections: 2, CallerClock: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var runs atomic.Int64
	rapid.Check(t, func(rt *rapid.T) {
		m := newMachine(rt, t, url, filepath.Join(dir, fmt.Sprint(runs.Add(1))))
		defer m.close()
		rt.Repeat(rapid.StateMachineActions(m))
	})
}

// named is one of the stores.
type named struct {
	name  string
	store protocol.Store
}

// machine does the same to each store. What it knows it reads from the
// reference.
type machine struct {
	ctx    context.Context
	dir    string
	stores []named // the reference first
	now    time.Time
	tasks  int
	steps  int
	held   []protocol.Task // as some runner once held them, the lease perhaps lost
	spaces map[string]protocol.Workspace
	last   protocol.Snapshot
}

var workspaceIDs = []string{"v", "w"}

func newMachine(rt *rapid.T, t *testing.T, url, dir string) *machine {
	m := &machine{ctx: context.Background(), dir: dir, now: time.Date(2026, 8, 5, 12, 0, 0, 123456789, time.UTC), spaces: map[string]protocol.Workspace{}}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		rt.Fatal(err)
	}
	file, err := sqlite.Open(m.ctx, filepath.Join(dir, "memwrite.db"), sqlite.Options{})
	if err != nil {
		rt.Fatal(err)
	}
	pgtest.Exec(t, url, `truncate workspaces, histories, tasks, identities, transitions, balances, entries, records`, `alter sequence record_numbers restart`)
	server, err := postgres.Open(m.ctx, postgres.Options{URL: url, Connections: 3, CallerClock: true})
	if err != nil {
		rt.Fatal(err)
	}
	m.stores = []named{{"memory", memory.New(1)}, {"sqlite", file}, {"postgres", server}}
	for _, id := range workspaceIDs {
		m.put(rt, protocol.Workspace{ID: id, AddsPerMonth: 4, Credits: 9})
	}
	return m
}

func (m *machine) close() {
	for _, s := range m.stores {
		_ = s.store.Close()
	}
	_ = os.RemoveAll(m.dir)
}

func (m *machine) put(rt *rapid.T, w protocol.Workspace) {
	m.spaces[w.ID] = w
	all(rt, m, func(s protocol.Store) (protocol.Workspace, error) {
		if err := s.PutWorkspace(m.ctx, w); err != nil {
			return w, err
		}
		return s.Workspace(m.ctx, w.ID)
	})
}

// all does one thing to every store and compares the answers.
func all[T any](rt *rapid.T, m *machine, f func(protocol.Store) (T, error)) (T, error) {
	rt.Helper()
	var want T
	var wantErr error
	for i, s := range m.stores {
		got, err := f(s.store)
		if i == 0 {
			want, wantErr = got, err
			continue
		}
		if kind(err) != kind(wantErr) {
			rt.Fatalf("%s: %v, and %s: %v", s.name, err, m.stores[0].name, wantErr)
		}
		if !reflect.DeepEqual(got, want) {
			rt.Fatalf("%s and %s differ:\n%+v\n%+v", s.name, m.stores[0].name, got, want)
		}
	}
	return want, wantErr
}

// kind is what a caller can tell of an error.
func kind(err error) string {
	var short *protocol.InsufficientError
	if errors.As(err, &short) {
		return fmt.Sprint(short.Account, short.Needed)
	}
	for _, known := range []error{protocol.ErrNotFound, protocol.ErrStale, protocol.ErrInvariant} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func plain(t protocol.Task) protocol.Task {
	doc.UTC(&t)
	return t
}

// Check compares everything that is stored, and holds it against the
// invariants.
func (m *machine) Check(rt *rapid.T) {
	m.last, _ = all(rt, m, func(s protocol.Store) (protocol.Snapshot, error) {
		snap, err := s.Snapshot(m.ctx)
		if err == nil {
			err = protocol.Check(snap)
		}
		return ordered(snap), err
	})
	if err := protocol.Check(m.last); err != nil {
		rt.Fatal(err)
	}
	all(rt, m, func(s protocol.Store) (string, error) {
		at, ok, err := s.NextDue(m.ctx)
		return fmt.Sprint(at.UnixNano(), ok), err
	})
	m.read(rt)
}
