// Package pgtest gives tests a PostgreSQL: the one on the standard port, else a
// throwaway of the binaries that are installed. Where there is neither, a test
// says what it did not test, and with MEMWRITE_REQUIRE_SERVICES=1 it fails.
package pgtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// standard is where a server is looked for first.
const standard = "postgres://postgres@127.0.0.1:5432/postgres"

var shared struct {
	once sync.Once
	url  string
	err  error
	hold io.Closer // while it is open the throwaway lives
}

// URL gives the test a schema of its own, which is dropped when it ends.
func URL(tb testing.TB) string {
	tb.Helper()
	return Schema(tb, Server(tb))
}

// Server is the server that tests share.
func Server(tb testing.TB) string {
	tb.Helper()
	shared.once.Do(func() {
		shared.url = os.Getenv("MEMWRITE_TEST_DATABASE_URL")
		if shared.url == "" {
			shared.url = standard
		}
		if shared.err = ping(shared.url); shared.err == nil {
			return
		}
		var c *Cluster
		if c, shared.err = start(os.TempDir()); shared.err == nil {
			shared.url = c.URL()
			shared.hold, shared.err = c.endWithProcess()
		}
	})
	if shared.err != nil {
		missing(tb, "PostgreSQL", shared.err)
	}
	return shared.url
}

// Schema makes a schema on a server.
func Schema(tb testing.TB, url string) string {
	tb.Helper()
	raw := make([]byte, 8)
	_, _ = rand.Read(raw)
	name := "test_" + hex.EncodeToString(raw)
	Exec(tb, url, "create schema "+name)
	tb.Cleanup(func() { Exec(tb, url, "drop schema "+name+" cascade") })
	glue := "?"
	if strings.Contains(url, "?") {
		glue = "&"
	}
	return url + glue + "search_path=" + name
}

// Exec runs statements on a connection of its own.
func Exec(tb testing.TB, url string, sql ...string) {
	tb.Helper()
	session(tb, url, func(ctx context.Context, conn *pgx.Conn) error {
		for _, s := range sql {
			if _, err := conn.Exec(ctx, s); err != nil {
				return err
			}
		}
		return nil
	})
}

// Read reads one value on a connection of its own.
func Read(tb testing.TB, url string, into any, sql string, args ...any) {
	tb.Helper()
	session(tb, url, func(ctx context.Context, conn *pgx.Conn) error { return conn.QueryRow(ctx, sql, args...).Scan(into) })
}

func session(tb testing.TB, url string, f func(context.Context, *pgx.Conn) error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if err := f(ctx, conn); err != nil {
		tb.Fatal(err)
	}
}

func ping(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// missing ends a test that needs what is not there.
func missing(tb testing.TB, what string, err error) {
	tb.Helper()
	if os.Getenv("MEMWRITE_REQUIRE_SERVICES") == "1" {
		tb.Fatalf("no %s: %v", what, err)
	}
	tb.Skipf("not tested with %s, for there is none: %v", what, err)
}
