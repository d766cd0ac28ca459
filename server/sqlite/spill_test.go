package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/internal/disk"
	"github.com/memwrite/memwrite-go/server/sqlite"
)

// A group of more than the cache holds is written in parts before its commit. The
// disk fails at one of these writes, or at one of the commit: nothing of the group
// is there, and nothing of what was there before is lost.
func TestAGroupLargerThanTheCacheIsWrittenOrNot(t *testing.T) {
	t.Parallel()
	s, d := onDisk(t)
	ctx := t.Context()
	tasks, refused := 0, 0
	text := strings.Repeat("much to say ", 20_000)
	for round, at := range []int{1, 2, 5, 13, 34, 55, 80, 100, 120, 1 << 30} {
		var mu sync.Mutex
		n := 0
		answer := []int32{disk.Full, disk.EIO}[round%2]
		hold := sqlite.Hold(s)
		d.Fail(func(op disk.Op, _ string) int32 {
			mu.Lock()
			defer mu.Unlock()
			if op == disk.Write {
				if n++; n == at {
					return answer
				}
			}
			return disk.OK
		})
		var wg sync.WaitGroup
		for i := range 60 {
			wg.Go(func() {
				a := proposal(fmt.Sprint("r", round, "-", i))
				a.Task.Command.Text = text
				_, _, err := s.Accept(context.Background(), a)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					tasks++
				case errors.Is(err, protocol.ErrUnavailable):
					refused++
				default:
					t.Error(err)
				}
			})
		}
		hold(60)
		wg.Wait()
		d.Fail(nil)
		path := filepath.Join(t.TempDir(), "copy.db")
		copyFiles(t, sqlite.Path(s), path)
		again, err := sqlite.Open(ctx, path, sqlite.Options{})
		if err != nil {
			t.Fatal(round, err)
		}
		whole(t, again, tasks)
		_ = again.Close()
		whole(t, s, tasks)
	}
	if tasks == 0 || refused == 0 {
		t.Errorf("%d tasks are there and %d were refused", tasks, refused)
	}
}
