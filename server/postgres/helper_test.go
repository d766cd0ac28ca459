package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/postgres"
)

var noon = time.Date(2026, 8, 5, 12, 0, 0, 0, time.UTC)

func space(id string, credits int64) protocol.Workspace {
	return protocol.Workspace{ID: id, AddsPerMonth: -1, Credits: credits}
}

func infer(key, text string) protocol.Command {
	return protocol.Command{Kind: protocol.Infer, Scope: protocol.Scope{UserID: "sam"}, Key: key, Text: text}
}

func proposal(w protocol.Workspace, task string, c protocol.Command, now time.Time) protocol.Acceptance {
	return protocol.Accept(protocol.Proposal{Workspace: w, Command: &c, TaskID: task, MaxAttempts: 5, Now: now})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// check holds everything stored against the invariants.
func check(t testing.TB, s protocol.Store) protocol.Snapshot {
	t.Helper()
	snap, err := s.Snapshot(context.Background())
	must(t, err)
	must(t, protocol.Check(snap))
	return snap
}

// session is a connection of the test's own.
func session(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	p, err := pgxpool.New(t.Context(), url)
	must(t, err)
	t.Cleanup(p.Close)
	return p
}

// together runs n calls that all begin at one moment.
func together(n int, f func(int)) {
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for i := range n {
		wg.Go(func() { <-begin; f(i) })
	}
	close(begin)
	wg.Wait()
}

func accept(t testing.TB, s *postgres.Store, w protocol.Workspace, key string) protocol.Task {
	t.Helper()
	got, _, err := s.Accept(t.Context(), proposal(w, "task_"+key, infer(key, "I like "+key), noon))
	must(t, err)
	return got
}

func claim(t testing.TB, s protocol.Store, limit int, token string, now time.Time) []protocol.Task {
	t.Helper()
	ts, err := s.Claim(t.Context(), now, limit, func(task protocol.Task) (protocol.WriteSet, bool) {
		ws, _, write := protocol.Claim(task, "runner", token, time.Minute, now)
		return ws, write
	})
	must(t, err)
	return ts
}

func name(format string, args ...any) string { return fmt.Sprintf(format, args...) }
