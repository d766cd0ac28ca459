package pgtest

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/memwrite/memwrite-go/internal/sched"
)

// Pooler is a PgBouncer in transaction mode: each transaction gets another one
// of a few sessions, in turn.
type Pooler struct {
	direct string // of the server behind it
	port   int
}

// Pool starts a pooler before the server of the tests, with so many sessions a
// database. It ends with the test; where PgBouncer is not installed, the test
// says what it did not test.
func Pool(tb testing.TB, sessions int) *Pooler {
	tb.Helper()
	bin, err := pgbouncer()
	if err != nil {
		missing(tb, "PgBouncer", err)
	}
	p := &Pooler{direct: Server(tb), port: freePort(tb)}
	cfg, err := pgx.ParseConfig(p.direct)
	if err != nil {
		tb.Fatal(err)
	}
	as, err := unprivileged()
	if err != nil {
		tb.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "memwrite-pooler-")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	ini := filepath.Join(dir, "pgbouncer.ini")
	said := filepath.Join(dir, "log")
	behind := fmt.Sprintf("host='%s' port=%d user='%s'", cfg.Host, cfg.Port, cfg.User)
	if cfg.Password != "" {
		behind += fmt.Sprintf(" password='%s'", strings.ReplaceAll(cfg.Password, "'", "''"))
	}
	settings := []string{
		"[databases]",
		"* = " + behind,
		"[pgbouncer]",
		"listen_addr = 127.0.0.1",
		fmt.Sprintf("listen_port = %d", p.port),
		"unix_socket_dir =",
		"auth_type = any",
		"pool_mode = transaction",
		fmt.Sprintf("default_pool_size = %d", sessions),
		"server_round_robin = 1",
		"max_client_conn = 1000",
	}
	if err := os.WriteFile(ini, []byte(strings.Join(settings, "\n")+"\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	out, err := os.Create(said)
	if err != nil {
		tb.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(bin, ini)
	cmd.Stdout, cmd.Stderr = out, out
	if as != nil {
		for _, path := range []string{dir, ini} {
			if err := os.Chown(path, int(as.Uid), int(as.Gid)); err != nil {
				tb.Fatal(err)
			}
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for end := time.Now().Add(30 * time.Second); ; {
		if err = ping(p.url("postgres")); err == nil {
			return p
		}
		if time.Now().After(end) {
			log, _ := os.ReadFile(said)
			tb.Fatalf("the pooler does not answer: %v\n%s", err, log[max(0, len(log)-2000):])
		}
		if err := sched.Sleep(tb.Context(), sched.Real(), 20*time.Millisecond); err != nil {
			tb.Fatal(err)
		}
	}
}

// Database makes a database of its own and gives its URL behind the pooler: a
// schema in the path would be a setting of the session.
func (p *Pooler) Database(tb testing.TB) string {
	tb.Helper()
	raw := make([]byte, 8)
	_, _ = rand.Read(raw)
	name := "test_" + hex.EncodeToString(raw)
	Exec(tb, p.direct, "create database "+name)
	tb.Cleanup(func() { Exec(tb, p.direct, "drop database "+name+" with (force)") })
	return p.url(name)
}

func (p *Pooler) url(database string) string {
	return fmt.Sprintf("postgres://anybody@127.0.0.1:%d/%s?sslmode=disable", p.port, database)
}

// Sessions is how many sessions of the server have served a database so far
// that are still there, and so how far its transactions were spread.
func (p *Pooler) Sessions(tb testing.TB, url string) (n int) {
	tb.Helper()
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		tb.Fatal(err)
	}
	Read(tb, p.direct, &n, `select count(*) from pg_stat_activity where datname = $1`, cfg.Database)
	return n
}

func pgbouncer() (string, error) {
	if path, err := exec.LookPath("pgbouncer"); err == nil {
		return path, nil
	}
	const path = "/usr/sbin/pgbouncer" // which is not on everybody's PATH
	if _, err := os.Stat(path); err != nil {
		return "", errors.New("pgbouncer is not installed")
	}
	return path, nil
}

func freePort(tb testing.TB) int {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
