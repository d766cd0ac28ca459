package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/memwrite/memwrite-go/server/sqlite"
)

func TestABackupIsOfOneMomentWhileWritesGoOn(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	if err := s.PutWorkspace(ctx, workspace()); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		accept(t, s, fmt.Sprint("before", i))
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				if _, _, err := s.Accept(ctx, proposal(fmt.Sprint("while", i))); err != nil {
					t.Errorf("a write during the backup: %v", err)
					return
				}
			}
		}
	})
	to := filepath.Join(t.TempDir(), "copy.db")
	err := sqlite.Backup(ctx, sqlite.Path(s), to)
	close(stop)
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy: %v, %v", info, err)
	}
	if err := sqlite.Backup(ctx, sqlite.Path(s), to); err == nil || !strings.Contains(err.Error(), "there already") {
		t.Errorf("a second backup in the same place says %v", err)
	}
	again, err := sqlite.Open(ctx, to, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	snap, err := again.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	whole(t, again, len(snap.Tasks))
	if len(snap.Tasks) < 50 {
		t.Errorf("%d tasks", len(snap.Tasks))
	}
	if err := sqlite.Backup(ctx, filepath.Join(t.TempDir(), "none.db"), to+"2"); err == nil {
		t.Error("a backup of nothing")
	}
	if _, err := os.Stat(to + "2"); err == nil {
		t.Error("a backup that failed left a file")
	}
}
