package pgtest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Cluster is a throwaway server of its own, which may be restarted at will.
type Cluster struct {
	bin, dir string
	port     int
	as       *syscall.Credential // PostgreSQL does not run as root
}

// Start makes a cluster that ends with the test.
func Start(tb testing.TB) *Cluster {
	tb.Helper()
	c, err := start(os.TempDir())
	if err != nil {
		missing(tb, "PostgreSQL", err)
	}
	tb.Cleanup(func() {
		if err := c.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return c
}

func start(under string) (*Cluster, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		if p, err := exec.LookPath("initdb"); err == nil {
			found = []string{p}
		}
	}
	if len(found) == 0 {
		return nil, errors.New("nothing answers on port 5432, and initdb is not installed")
	}
	sort.Strings(found)
	dir, err := os.MkdirTemp(under, "memwrite-pg-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{bin: filepath.Dir(found[len(found)-1]), dir: dir}
	if c.as, err = unprivileged(); err != nil {
		return nil, err
	}
	if c.as != nil {
		if err := os.Chown(dir, int(c.as.Uid), int(c.as.Gid)); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c.port = l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	if err := c.run("initdb", "-D", c.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"); err != nil {
		return nil, err
	}
	if err := c.ctl("start"); err != nil {
		return nil, err
	}
	return c, nil
}

// unprivileged is who servers run as that do not run as root, or nil for who
// runs the test.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, errors.New("the server does not run as root, and there is no user postgres or nobody")
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

// URL is its database.
func (c *Cluster) URL() string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres", c.port)
}

// Crash kills the server as a power cut would its process, and starts it again.
func (c *Cluster) Crash() error { return c.ctl("restart", "-m", "immediate") }

// Halt stops the server at once; Resume starts it again.
func (c *Cluster) Halt() error   { return c.ctl("stop", "-m", "immediate") }
func (c *Cluster) Resume() error { return c.ctl("start") }

// Stop ends it and removes its files.
func (c *Cluster) Stop() error {
	err := c.ctl("stop", "-m", "immediate")
	return errors.Join(err, os.RemoveAll(c.dir))
}

// endWithProcess stops the cluster and removes its files when this process is
// gone, however it ended: a shell reads from it until then.
func (c *Cluster) endWithProcess() (io.Closer, error) {
	cmd := exec.Command("sh", "-c", `cat >/dev/null; "$1" -D "$2/data" -m immediate stop >/dev/null 2>&1; rm -rf "$2"`, "sh", filepath.Join(c.bin, "pg_ctl"), c.dir)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: c.as}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return in, cmd.Start()
}

func (c *Cluster) ctl(args ...string) error {
	opts := fmt.Sprintf("-p %d -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c max_connections=100", c.port)
	return c.run("pg_ctl", append([]string{"-D", c.data(), "-l", filepath.Join(c.dir, "log"), "-w", "-t", "60", "-o", opts}, args...)...)
}

func (c *Cluster) run(name string, args ...string) error {
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Dir = c.dir
	// A server that inherits a pipe would hold it open for ever.
	out, err := os.CreateTemp("", "memwrite-pg-*.log")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(out.Name()) }()
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if c.as != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.as}
	}
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(out.Name())
		lines := strings.Split(strings.TrimSpace(string(said)), "\n")
		return fmt.Errorf("%s: %w: %s", name, err, strings.Join(lines[max(0, len(lines)-3):], "; "))
	}
	return nil
}
