package linear

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/internal/store/memory"
	"github.com/memwrite/memwrite-go/server/internal/pgtest"
	"github.com/memwrite/memwrite-go/server/postgres"
	"github.com/memwrite/memwrite-go/server/sqlite"
)

// hosts are the servers of a history.
type hosts interface {
	url() string        // of one that runs, "" when none does
	kill(r *rand.Rand)  // ends one without a word, and starts it again
	close(t *testing.T) // ends all
}

// inMemory is one server whose store outlives it: what is killed is everything
// around the store, requests under way among it.
type inMemory struct {
	store   protocol.Store
	runners bool
	spoil   func(*node) // makes it wrong

	mu     sync.Mutex
	at     string
	server *http.Server
	node   *node
}

func startMemory(t *testing.T, store protocol.Store, runners bool) *inMemory {
	h := &inMemory{store: store, runners: runners}
	if err := h.start(); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *inMemory) start() error {
	n, err := newNode(context.Background(), h.store, sched.Real(), h.runners)
	if err != nil {
		return err
	}
	if h.spoil != nil {
		h.spoil(n)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.node, h.server, h.at = n, &http.Server{Handler: n.handler}, "http://"+l.Addr().String()
	go func(s *http.Server) { _ = s.Serve(l) }(h.server)
	return nil
}

func (h *inMemory) url() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at
}

func (h *inMemory) stop() {
	h.mu.Lock()
	n, s := h.node, h.server
	h.at = ""
	h.mu.Unlock()
	_ = s.Close()
	n.engine.Close()
}

func (h *inMemory) kill(*rand.Rand) {
	h.stop()
	if err := h.start(); err != nil {
		panic(err)
	}
}

func (h *inMemory) close(*testing.T) { h.stop() }

// The environment of a child process.
const (
	envStore   = "MEMWRITE_LINEAR_STORE" // a file, or the URL of a database
	envRunners = "MEMWRITE_LINEAR_RUNNERS"
)

// processes are servers that are killed by the operating system.
type processes struct {
	env []string

	mu  sync.Mutex
	all []*process
}

type process struct {
	cmd *exec.Cmd
	at  string
	in  io.Closer
}

func startProcesses(t *testing.T, n int, store string, runners bool) *processes {
	h := &processes{env: append(os.Environ(), envStore+"="+store, fmt.Sprintf("%s=%v", envRunners, runners))}
	for range n {
		p, err := h.start()
		if err != nil {
			t.Fatal(err)
		}
		h.all = append(h.all, p)
	}
	return h
}

// start runs this test binary as a server, and waits until it says where it is.
func (h *processes) start() (*process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe)
	cmd.Env, cmd.Stderr = h.env, os.Stderr
	in, err := cmd.StdinPipe() // it ends with this process, however that ends
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = cmd.Wait()
		return nil, fmt.Errorf("a server did not start: %w", err)
	}
	return &process{cmd: cmd, at: strings.TrimSpace(line), in: in}, nil
}

func (h *processes) url() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var up []string
	for _, p := range h.all {
		if p != nil {
			up = append(up, p.at)
		}
	}
	if len(up) == 0 {
		return ""
	}
	return up[rand.IntN(len(up))]
}

func (p *process) end() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	_ = p.in.Close()
}

func (h *processes) kill(r *rand.Rand) {
	h.mu.Lock()
	i := r.IntN(len(h.all))
	p := h.all[i]
	h.all[i] = nil
	h.mu.Unlock()
	p.end()
	p, err := h.start()
	if err != nil {
		panic(err)
	}
	h.mu.Lock()
	h.all[i] = p
	h.mu.Unlock()
}

func (h *processes) close(*testing.T) {
	for _, p := range h.all {
		p.end()
	}
}

// child is such a server. It ends when its standard input does.
func child() error {
	ctx := context.Background()
	name := os.Getenv(envStore)
	var store protocol.Store
	clock := sched.Real()
	if strings.HasPrefix(name, "postgres://") {
		s, err := postgres.Open(ctx, postgres.Options{URL: name, Connections: 6})
		if err != nil {
			return err
		}
		store, clock = s, s.Clock()
	} else {
		s, err := sqlite.Open(ctx, name, sqlite.Options{SkipCheck: true})
		if err != nil {
			return err
		}
		store = s
	}
	n, err := newNode(ctx, store, clock, os.Getenv(envRunners) == "true")
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Println("http://" + l.Addr().String())
	return http.Serve(l, n.handler)
}

// kinds of stores, and how their servers are started for a history.
var kinds = []struct {
	name  string
	start func(t *testing.T, runners bool) hosts
}{
	{"memory", func(t *testing.T, runners bool) hosts { return startMemory(t, memory.New(1), runners) }},
	{"sqlite", func(t *testing.T, runners bool) hosts {
		return startProcesses(t, 1, filepath.Join(t.TempDir(), "memwrite.db"), runners)
	}},
	{"postgres", func(t *testing.T, runners bool) hosts { return startProcesses(t, 3, pgtest.URL(t), runners) }},
}
