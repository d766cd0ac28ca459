package riverworker_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// server is the PostgreSQL of this process's tests: the one that is named, the
// one on the standard port, or else a throwaway of the installed binaries.
var server struct {
	once sync.Once
	url  string
	err  error
	stop func()
}

func TestMain(m *testing.M) {
	code := m.Run()
	if server.stop != nil {
		server.stop()
	}
	os.Exit(code)
}

func serverURL(t *testing.T) string {
	t.Helper()
	server.once.Do(func() {
		server.url = os.Getenv("MEMWRITE_TEST_DATABASE_URL")
		if server.url == "" {
			server.url = "postgres://postgres@127.0.0.1:5432/postgres?sslmode=disable"
		}
		if server.err = ping(server.url); server.err != nil && os.Getenv("MEMWRITE_TEST_DATABASE_URL") == "" {
			server.url, server.stop, server.err = throwaway()
		}
	})
	if server.err != nil && os.Getenv("MEMWRITE_REQUIRE_SERVICES") == "1" {
		t.Fatalf("no PostgreSQL: %v", server.err)
	}
	if server.err != nil {
		t.Skipf("not tested on PostgreSQL, for there is none: %v", server.err)
	}
	return server.url
}

func ping(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// throwaway starts a server whose files go with it.
func throwaway() (url string, stop func(), err error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(found) == 0 {
		return "", nil, errors.New("nothing answers on port 5432, and PostgreSQL is not installed")
	}
	bin := slices.Max(found)
	dir, err := os.MkdirTemp("", "memwrite-river-")
	if err != nil {
		return "", nil, err
	}
	attr := &syscall.SysProcAttr{}
	if os.Geteuid() == 0 { // PostgreSQL does not run as root
		u, err := user.Lookup("postgres")
		if err != nil {
			return "", nil, err
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(dir, uid, gid); err != nil {
			return "", nil, err
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	data := filepath.Join(dir, "data")
	run := func(name string, args ...string) error {
		cmd := exec.Command(filepath.Join(bin, name), args...) // without pipes, which the server would keep open
		cmd.Dir, cmd.SysProcAttr = dir, attr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
	stop = func() {
		_ = run("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
		_ = os.RemoveAll(dir)
	}
	if err = run("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"); err == nil {
		err = run("pg_ctl", "-D", data, "-l", filepath.Join(dir, "log"), "-w", "-o",
			fmt.Sprintf("-p %d -c listen_addresses=127.0.0.1 -c unix_socket_directories=''", port), "start")
	}
	if err != nil {
		stop()
		return "", nil, err
	}
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port), stop, nil
}
