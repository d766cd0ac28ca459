package sqlite

import (
	"context"
	"testing"
	"time"
)

// Synchronous sets how the writer syncs, behind the store's back.
func Synchronous(t *testing.T, s *Store, mode string) {
	t.Helper()
	if err := s.tx.plain("PRAGMA synchronous = " + mode); err != nil {
		t.Fatal(err)
	}
}

// Hold keeps the writer until the returned function is called and so many
// writes wait for it.
func Hold(s *Store) (release func(waiting int)) {
	held, free := make(chan struct{}), make(chan struct{})
	go func() {
		_ = s.queue.alone(context.Background(), func() error {
			close(held)
			<-free
			return nil
		})
	}()
	<-held
	return func(waiting int) {
		Queued(s, waiting)
		close(free)
	}
}

// Queued returns when so many writes wait.
func Queued(s *Store, waiting int) {
	for {
		s.queue.mu.Lock()
		n := len(s.queue.waiting)
		s.queue.mu.Unlock()
		if n >= waiting {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// Folded returns when nobody moves the log. Nobody may be writing.
func Folded(s *Store) { s.folding.going.Wait() }

// Path is where the file is.
func Path(s *Store) string { return s.path }
