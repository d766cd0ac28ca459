package gather_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/memwrite/memwrite-go/server/internal/disk"
	"github.com/memwrite/memwrite-go/server/internal/gather"
)

// on opens two connections to a file with a log, over a disk that counts what is
// written to the log and may be told to fail.
func on(t *testing.T) (writer, reader *sql.DB, d *disk.Disk) {
	t.Helper()
	d, err := disk.New()
	if err != nil {
		t.Fatal(err)
	}
	vfs, err := gather.Over(d.Name())
	if err != nil {
		t.Fatal(err)
	}
	if again, err := gather.Over(d.Name()); err != nil || again != vfs {
		t.Errorf("asked again it says %q, %v", again, err)
	}
	path := filepath.Join(t.TempDir(), "x.db")
	open := func() *sql.DB {
		db, err := sql.Open("sqlite", "file:"+path+"?vfs="+vfs+"&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=cache_size(16)")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		db.SetMaxOpenConns(1)
		return db
	}
	writer, reader = open(), open()
	if _, err := writer.ExecContext(t.Context(), `CREATE TABLE x (n INTEGER PRIMARY KEY, text TEXT)`); err != nil {
		t.Fatal(err)
	}
	return writer, reader, d
}

func insert(ctx context.Context, db interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, n int) error {
	_, err := db.ExecContext(ctx, `WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < ?)
		INSERT INTO x (text) SELECT i || ? FROM c`, n, strings.Repeat(".", 1000))
	return err
}

func count(t *testing.T, db interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), `SELECT count(text) FROM x`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// The pages of a commit go to the log by one write, and others see it at once.
func TestACommitIsOneWrite(t *testing.T) {
	t.Parallel()
	writer, reader, d := on(t)
	var writes atomic.Int64
	d.Fail(func(op disk.Op, path string) int32 {
		if op == disk.Write && strings.HasSuffix(path, "-wal") {
			writes.Add(1)
		}
		return disk.OK
	})
	for i := range 20 {
		writes.Store(0)
		if err := insert(t.Context(), writer, 30); err != nil {
			t.Fatal(err)
		}
		if n := writes.Load(); n != 1 {
			t.Errorf("commit %d made %d writes", i, n)
		}
		if n := count(t, reader); n != 30*(i+1) {
			t.Errorf("another connection sees %d rows after %d commits", n, i+1)
		}
	}
}

// A transaction that is larger than the cache and than what may wait writes its
// pages as it goes, reads them back, and may be taken back as a whole.
func TestWhatWaitsIsRead(t *testing.T) {
	t.Parallel()
	writer, reader, _ := on(t)
	for _, keep := range []bool{false, true} {
		tx, err := writer.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			if err := insert(t.Context(), tx, 50); err != nil {
				t.Fatal(err)
			}
			if n := count(t, tx); n != 50*(i+1) {
				t.Errorf("it sees %d of its own rows after %d", n, 50*(i+1))
			}
		}
		if n := count(t, reader); n != 0 {
			t.Errorf("another connection sees %d rows of it", n)
		}
		end, want := tx.Rollback, 0
		if keep {
			end, want = tx.Commit, 500
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		for _, db := range []*sql.DB{writer, reader} {
			if n := count(t, db); n != want {
				t.Errorf("%d rows are there, want %d", n, want)
			}
		}
	}
	var ok string
	if err := reader.QueryRowContext(t.Context(), `PRAGMA integrity_check`).Scan(&ok); err != nil || ok != "ok" {
		t.Errorf("%s, %v", ok, err)
	}
}

// A write that fails fails its commit, and nothing of it is seen.
func TestAWriteThatFailsIsTold(t *testing.T) {
	t.Parallel()
	writer, reader, d := on(t)
	for i, answer := range []int32{disk.Full, disk.EIO} {
		d.Fail(func(op disk.Op, path string) int32 {
			if op == disk.Write && strings.HasSuffix(path, "-wal") {
				return answer
			}
			return disk.OK
		})
		if err := insert(t.Context(), writer, 30); err == nil {
			t.Error("a write that failed is not told")
		}
		d.Fail(nil)
		if n := count(t, reader); n != 30*i {
			t.Errorf("%d rows are seen, want %d", n, 30*i)
		}
		if err := insert(t.Context(), writer, 30); err != nil {
			t.Error(err)
		}
		if n := count(t, reader); n != 30*(i+1) {
			t.Errorf("%d rows are seen after it healed, want %d", n, 30*(i+1))
		}
	}
}

func TestAnUnknownVFSIsTold(t *testing.T) {
	t.Parallel()
	if _, err := gather.Over("nowhere"); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", "nowhere")) {
		t.Errorf("says %v", err)
	}
}
