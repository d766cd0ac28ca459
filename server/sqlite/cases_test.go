package sqlite_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/sqlite"
)

// Somebody takes the end of a lease away by hand. The row refuses it; forced in,
// repair finds the task all the same.
func TestB17_ARunningRowWithoutAnEndIsRefused(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	if err := s.PutWorkspace(ctx, workspace()); err != nil {
		t.Fatal(err)
	}
	task := accept(t, s, "k")
	task, err := s.Apply(ctx, claimed(task))
	if err != nil {
		t.Fatal(err)
	}
	path := sqlite.Path(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	for _, q := range []string{
		`UPDATE task SET due = NULL`, `UPDATE task SET token = ''`, `UPDATE task SET state = 'PENDING'`, `UPDATE task SET state = 'LOST'`,
		`UPDATE balance SET available = available - 1`, `UPDATE balance SET reserved = -1, available = available + 1`,
	} {
		if _, err := db.ExecContext(ctx, q); err == nil || !strings.Contains(err.Error(), "CHECK constraint") {
			t.Errorf("%s: %v", q, err)
		}
	}
	if _, err := db.ExecContext(ctx, `UPDATE task SET due = ?`, -1); err != nil { // an end, and a senseless one
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s, err = sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	later := noon.Add(time.Hour)
	got, err := s.Claim(ctx, later, 1, func(t protocol.Task) (protocol.WriteSet, bool) {
		ws, _, write := protocol.Claim(t, "repair", "token2", time.Minute, later)
		return ws, write
	})
	if err != nil || len(got) != 1 || got[0].ID != task.ID || got[0].Attempts != 2 {
		t.Errorf("repair found %+v, %v", got, err)
	}
}

// busy lets goroutines accept and claim on one file, and counts by how many
// claims each task was taken.
func busy(t *testing.T, s *sqlite.Store, claimers int) (claims map[string]int, accepted int) {
	t.Helper()
	ctx := t.Context()
	if err := s.PutWorkspace(ctx, workspace()); err != nil {
		t.Fatal(err)
	}
	const acceptors, each = 3, 60
	claims = map[string]int{}
	var mu sync.Mutex
	var wg, accepting sync.WaitGroup
	done := make(chan struct{})
	for a := range acceptors {
		accepting.Go(func() {
			for i := range each {
				if _, twin, err := s.Accept(ctx, proposal(fmt.Sprint("k", a, "-", i))); err != nil || twin {
					t.Errorf("accept: twin %v, %v", twin, err)
				}
			}
		})
	}
	for c := range claimers {
		wg.Go(func() {
			for last := false; ; {
				ts, err := s.Claim(ctx, noon, 4, func(task protocol.Task) (protocol.WriteSet, bool) {
					ws, _, write := protocol.Claim(task, fmt.Sprint("runner", c), fmt.Sprint("token", c), time.Minute, noon)
					return ws, write
				})
				if err != nil {
					t.Errorf("claim: %v", err)
					return
				}
				mu.Lock()
				for _, task := range ts {
					claims[task.ID]++
				}
				mu.Unlock()
				if len(ts) > 0 {
					continue
				}
				if last {
					return
				}
				select {
				case <-done:
					last = true // one more look: what was accepted last
				case <-time.After(time.Millisecond):
				}
			}
		})
	}
	accepting.Wait()
	close(done)
	wg.Wait()
	return claims, acceptors * each
}

// A transaction that reads first and writes then is refused at once when
// somebody wrote in between, whatever the time-out. Here none is.
func TestB60_SixGoroutinesClaimAndAcceptWithoutBusy(t *testing.T) {
	t.Parallel()
	s := open(t)
	claims, accepted := busy(t, s, 3)
	if len(claims) != accepted {
		t.Errorf("%d of %d tasks were claimed", len(claims), accepted)
	}
}

// Two workers never have one job.
func TestB61_NoTaskIsClaimedTwice(t *testing.T) {
	t.Parallel()
	s := open(t)
	claims, accepted := busy(t, s, 6)
	for id, n := range claims {
		if n != 1 {
			t.Errorf("%s was claimed %d times", id, n)
		}
	}
	for _, task := range whole(t, s, accepted).Tasks {
		if task.State != protocol.Running || task.Attempts != 1 {
			t.Errorf("%s is %s at attempt %d", task.ID, task.State, task.Attempts)
		}
	}
	if _, err := sqlite.Open(t.Context(), sqlite.Path(s), sqlite.Options{}); !errors.Is(err, sqlite.ErrInUse) {
		t.Errorf("a second process is let in: %v", err)
	}
}
