package sqlite_test

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/memwrite/memwrite-go/server/sqlite"
)

// The log does not grow with what is written: it is moved to the file meanwhile,
// and begins anew, long before SQLite's own limit.
func TestTheLogBeginsAnewWhileWritesGoOn(t *testing.T) {
	t.Parallel()
	s := open(t)
	if err := s.PutWorkspace(t.Context(), workspace()); err != nil {
		t.Fatal(err)
	}
	const rounds, callers, each = 8, 16, 125
	for r := range rounds {
		var wg sync.WaitGroup
		for c := range callers {
			wg.Go(func() {
				for i := range each {
					if _, _, err := s.Accept(t.Context(), proposal(fmt.Sprint("r", r, "c", c, "-", i))); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		sqlite.Folded(s)
	}
	log, err := os.Stat(sqlite.Path(s) + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	const page, limit = 4096 + 24, 10000
	if pages := log.Size() / page; pages >= limit {
		t.Errorf("the log has grown to %d pages", pages)
	}
	if err := s.Checkpoint(t.Context()); err != nil {
		t.Error(err)
	}
	whole(t, s, rounds*callers*each)
}
