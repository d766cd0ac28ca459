package sqlite_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/internal/disk"
	"github.com/memwrite/memwrite-go/server/sqlite"
)

// broken are disks that answer for good until they are healed.
var broken = map[string]func(disk.Op, string) int32{
	"full": func(op disk.Op, _ string) int32 {
		if op == disk.Write {
			return disk.Full
		}
		return disk.OK
	},
	"EIO at a write": func(op disk.Op, _ string) int32 {
		if op == disk.Write {
			return disk.EIO
		}
		return disk.OK
	},
	"EIO at a sync": func(op disk.Op, _ string) int32 {
		if op == disk.Sync {
			return disk.SyncEIO
		}
		return disk.OK
	},
}

func TestABrokenDiskRefusesAndLosesNothing(t *testing.T) {
	t.Parallel()
	for name, judge := range broken {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, d := onDisk(t)
			ctx := t.Context()
			before := accept(t, s, "before")
			d.Fail(judge)
			if _, _, err := s.Accept(ctx, proposal("while")); !errors.Is(err, protocol.ErrUnavailable) {
				t.Fatalf("a broken disk says %v", err)
			}
			if _, err := s.Apply(ctx, claimed(before)); !errors.Is(err, protocol.ErrUnavailable) {
				t.Fatalf("a broken disk says %v", err)
			}
			if got, err := s.Task(ctx, before.ID); err != nil || got.State != protocol.Pending {
				t.Errorf("while it is broken: %+v, %v", got, err)
			}
			d.Fail(nil)
			accept(t, s, "while") // it was not kept, and its key is free
			if got, err := s.Apply(ctx, claimed(before)); err != nil || got.Version != 2 {
				t.Errorf("after it healed: %+v, %v", got, err)
			}
			whole(t, s, 2)
		})
	}
}

func claimed(t protocol.Task) protocol.WriteSet {
	ws, _, _ := protocol.Claim(t, "runner", "token", time.Minute, noon)
	return ws
}

// whole holds a store against the invariants and the number of its tasks.
func whole(t *testing.T, s *sqlite.Store, tasks int) protocol.Snapshot {
	t.Helper()
	snap, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := protocol.Check(snap); err != nil {
		t.Error(err)
	}
	if len(snap.Tasks) != tasks {
		t.Errorf("%d tasks, want %d", len(snap.Tasks), tasks)
	}
	return snap
}

// A disk that fails now and then, in the middle of a transaction and of a
// checkpoint, under many callers who send again. Then the machine stops: what
// was accepted is in a copy of the files as they are.
func TestADiskThatFailsNowAndThenLosesNothing(t *testing.T) {
	t.Parallel()
	s, d := onDisk(t)
	ctx := t.Context()
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(1, 2))
	d.Fail(func(op disk.Op, _ string) int32 {
		mu.Lock()
		defer mu.Unlock()
		switch n := random.IntN(1000); {
		case op == disk.Write && n < 4:
			return disk.Full
		case op == disk.Write && n < 8:
			return disk.EIO
		case op == disk.Sync && n < 60:
			return disk.SyncEIO
		}
		return disk.OK
	})
	const callers, each = 8, 40
	var refused int
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				a := proposal(fmt.Sprint("c", c, "-", i))
				for tries := 0; ; tries++ {
					_, _, err := s.Accept(ctx, a)
					if err == nil {
						break
					}
					if !errors.Is(err, protocol.ErrUnavailable) || tries > 200 {
						t.Errorf("says %v", err)
						return
					}
					mu.Lock()
					refused++
					mu.Unlock()
				}
				if i%10 == 0 {
					_ = s.Checkpoint(ctx)
				}
			}
		})
	}
	wg.Wait()
	if refused == 0 {
		t.Error("the disk never failed")
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	copyFiles(t, sqlite.Path(s), path)
	again, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	whole(t, again, callers*each)
	d.Fail(nil)
	whole(t, s, callers*each)
}

// copyFiles copies a database and its log as they are on the disk.
func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	for _, suffix := range []string{"", "-wal"} {
		raw, err := os.ReadFile(from + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to+suffix, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAFullDiskAtTheStartIsTold(t *testing.T) {
	t.Parallel()
	d, err := disk.New()
	if err != nil {
		t.Fatal(err)
	}
	d.Fail(broken["full"])
	_, err = sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "memwrite.db"), sqlite.Options{VFS: d.Name()})
	if err == nil || !strings.Contains(err.Error(), "disk is full") {
		t.Errorf("says %v", err)
	}
}
