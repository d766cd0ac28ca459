package sqlite_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/memwrite/memwrite-go/server/internal/disk"
	"github.com/memwrite/memwrite-go/server/sqlite"
)

// onDisk is a store on a disk that is watched.
func onDisk(t *testing.T) (*sqlite.Store, *disk.Disk) {
	t.Helper()
	d, err := disk.New()
	if err != nil {
		t.Fatal(err)
	}
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "memwrite.db"), sqlite.Options{VFS: d.Name()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.Fail(nil)
		if err := s.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	if err := s.PutWorkspace(t.Context(), workspace()); err != nil {
		t.Fatal(err)
	}
	return s, d
}

// unsynced accepts commands one at a time and then from many callers, and
// counts those that were answered before the log was synced.
func unsynced(t *testing.T, s *sqlite.Store, d *disk.Disk) int64 {
	t.Helper()
	var early atomic.Int64
	one := func(key string) {
		before := d.Syncs()
		if _, twin, err := s.Accept(t.Context(), proposal(key)); err != nil || twin {
			t.Errorf("twin %v, %v", twin, err)
		}
		if d.Syncs() == before {
			early.Add(1)
		}
	}
	for i := range 20 {
		one(fmt.Sprint("alone", i))
	}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 20 {
				one(fmt.Sprint("group", w, "-", i))
			}
		})
	}
	wg.Wait()
	return early.Load()
}

func TestEachAcceptIsSyncedBeforeItReturns(t *testing.T) {
	t.Parallel()
	s, d := onDisk(t)
	if n := unsynced(t, s, d); n != 0 {
		t.Errorf("%d of 180 accepts returned before the log was synced", n)
	}
}

func TestAStoreThatDoesNotSyncIsFound(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"OFF", "NORMAL"} {
		s, d := onDisk(t)
		sqlite.Synchronous(t, s, mode)
		if n := unsynced(t, s, d); n < 20 {
			t.Errorf("synchronous %s: only %d of 180 accepts were seen to return before the log was synced", mode, n)
		}
	}
}
