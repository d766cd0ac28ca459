package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/sqlite"
)

var noon = time.Date(2026, 8, 5, 12, 0, 0, 0, time.UTC)

func workspace() protocol.Workspace {
	return protocol.Workspace{ID: "w", AddsPerMonth: -1, Credits: -1}
}

func proposal(key string) protocol.Acceptance {
	c := protocol.Command{Kind: protocol.Infer, Scope: protocol.Scope{UserID: "sam"}, Key: key, Text: "raw input of " + key}
	return protocol.Accept(protocol.Proposal{Workspace: workspace(), Command: &c, TaskID: "task_" + key, MaxAttempts: 5, Now: noon})
}

func accept(t *testing.T, s protocol.Store, key string) protocol.Task {
	t.Helper()
	got, twin, err := s.Accept(t.Context(), proposal(key))
	if err != nil || twin {
		t.Fatalf("twin %v, %v", twin, err)
	}
	return got
}

func TestWhatWasWrittenIsThereAfterReopening(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a", "folder", "memwrite.db")
	ctx := t.Context()
	s, err := sqlite.Open(ctx, path, sqlite.Options{FirstNumber: 100})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.PutWorkspace(ctx, workspace()); err != nil {
		t.Fatal(err)
	}
	task := accept(t, s, "k")
	first, err := s.Allot(ctx, 3)
	if err != nil || first != 100 {
		t.Fatalf("number %d, %v", first, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatalf("the second close: %v", err)
	}
	if _, _, err := s.Accept(ctx, proposal("late")); !errors.Is(err, protocol.ErrUnavailable) {
		t.Fatalf("a closed store says %v", err)
	}
	s, err = sqlite.Open(ctx, path, sqlite.Options{FirstNumber: 100})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, err := s.TaskByIdentity(ctx, task.Identity.Hash)
	if err != nil || got.ID != task.ID || got.Version != 1 || got.Command.Text != task.Command.Text {
		t.Fatalf("%+v, %v", got, err)
	}
	if n, err := s.Allot(ctx, 1); err != nil || n != 103 {
		t.Fatalf("number %d, %v", n, err)
	}
	for _, f := range []string{path, filepath.Dir(path)} {
		if info, err := os.Stat(f); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s may be read by others: %v, %v", f, info.Mode(), err)
		}
	}
}

func TestWhatStandsInTheWayIsTold(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for name, c := range map[string]struct {
		damage func(t *testing.T, path string)
		want   error
		say    string
	}{
		"a second process": {func(t *testing.T, path string) {
			s, err := sqlite.Open(ctx, path, sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
		}, sqlite.ErrInUse, "stop it first"},
		"a newer schema": {func(t *testing.T, path string) {
			made(t, path)
			db, err := sql.Open("sqlite", path)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.ExecContext(ctx, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)`); err != nil {
				t.Fatal(err)
			}
		}, sqlite.ErrNewer, "upgrade memwrite"},
		"a damaged file": {func(t *testing.T, path string) {
			made(t, path)
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteAt([]byte(strings.Repeat("damage", 4000)), 8192); err != nil {
				t.Fatal(err)
			}
		}, sqlite.ErrDamaged, "backup"},
		"another file": {func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(strings.Repeat("this is no database", 400)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, nil, "no SQLite file"},
		"a folder in its place": {func(t *testing.T, path string) {
			if err := os.MkdirAll(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, nil, "is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "memwrite.db")
			c.damage(t, path)
			s, err := sqlite.Open(ctx, path, sqlite.Options{})
			if err == nil {
				_ = s.Close()
				t.Fatal("opened")
			}
			if (c.want != nil && !errors.Is(err, c.want)) || !strings.Contains(err.Error(), c.say) || !strings.Contains(err.Error(), path) {
				t.Errorf("says %q", err)
			}
		})
	}
}

// made leaves a file with one task in it.
func made(t *testing.T, path string) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.PutWorkspace(t.Context(), workspace()); err != nil {
		t.Fatal(err)
	}
	accept(t, s, "k")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAFailedOpenGivesTheFileBack(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "memwrite.db")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sqlite.Open(ctx, path, sqlite.Options{}); err == nil {
		t.Fatal("opened although nobody waits")
	}
	made(t, path)
}
