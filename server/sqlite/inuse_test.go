package sqlite_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/server/sqlite"
)

// waited tells when somebody begins to wait on it.
type waited struct {
	sched.Scheduler
	once  sync.Once
	begun chan struct{}
}

func (w *waited) Wait(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	w.once.Do(func() { close(w.begun) })
	return w.Scheduler.Wait(ctx, d, wake)
}

// A file that is let go within a second is no error.
func TestAFileThatIsBeingLetGoIsWaitedFor(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "memwrite.db")
	first, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &waited{Scheduler: sched.Real(), begun: make(chan struct{})}
	go func() {
		<-w.begun
		_ = first.Close()
	}()
	second, err := sqlite.Open(t.Context(), path, sqlite.Options{Scheduler: w})
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}
