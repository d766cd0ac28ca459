//go:build unix

package crash

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
)

// Config is a store and the servers that share it.
type Config struct {
	Store string // as the result names it
	Nodes int    // 1, unless the store is for many
	Env   []string
	// Read gives everything that is stored. With one node it is called while
	// no server runs.
	Read func(ctx context.Context) (protocol.Snapshot, error)
	// Between is called between rounds; nil does nothing. It may restart the
	// database.
	Between func(ctx context.Context, round int) error
	Rounds  int
	Log     func(format string, args ...any)
}

// node is one server and the listener that outlives it.
type node struct {
	url      string
	listener *os.File
	env      []string
	cmd      *exec.Cmd
	dead     chan struct{}  // closed when the process is gone
	point    protocol.Point // that it died at; read once it is dead
	log      func(string, ...any)
}

func newNode(env []string, log func(string, ...any)) (*node, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		return nil, err
	}
	return &node{url: "http://" + l.Addr().String(), listener: f, env: env, log: log}, nil
}

// start starts the server, to die at the n-th pass of a point, and waits until
// it is ready or gone.
func (n *node) start(point protocol.Point, times int) error {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), n.env...), envChild+"=1", envPoint+"="+string(point), fmt.Sprintf("%s=%d", envTimes, times))
	cmd.ExtraFiles = []*os.File{n.listener}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	n.cmd, n.dead, n.point = cmd, make(chan struct{}), ""
	ready := make(chan struct{})
	sched.Real().Go(func() {
		defer close(n.dead)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if lines.Text() == "ready" {
				close(ready)
			}
			if p, ok := strings.CutPrefix(lines.Text(), "at "); ok {
				n.point = protocol.Point(p)
			}
		}
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	})
	select {
	case <-ready:
		return nil
	case <-n.dead:
		if n.point != "" {
			return nil // it came to its point at once, on work that was left
		}
		return errors.New("a server ended before it was ready")
	}
}

func (n *node) alive() bool {
	if n.dead == nil {
		return false
	}
	select {
	case <-n.dead:
		return false
	default:
		return true
	}
}

// kill gives the server no chance to do anything.
func (n *node) kill() {
	if n.alive() {
		_ = n.cmd.Process.Signal(syscall.SIGKILL)
		<-n.dead
	}
}

// stop lets the server end in good order.
func (n *node) stop() error {
	if !n.alive() {
		return errors.New("a server was gone before it was stopped")
	}
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	<-n.dead
	if code := n.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("a server that was stopped ended with %d", code)
	}
	return nil
}

// Run writes through rounds of kills, and then until everything has ended, and
// judges by what is stored. The error is what kept it from finding out, or an
// invariant that is broken.
func Run(ctx context.Context, c Config) (r Result, err error) {
	r = Result{Store: c.Store, Rounds: c.Rounds, Fired: map[protocol.Point]int{}}
	nodes := make([]*node, max(c.Nodes, 1))
	urls := make([]string, len(nodes))
	for i := range nodes {
		n, err := newNode(c.Env, c.Log)
		if err != nil {
			return r, err
		}
		defer n.listener.Close()
		defer n.kill()
		nodes[i], urls[i] = n, n.url
	}
	l, err := newLoad(urls)
	if err != nil {
		return r, err
	}
	defer l.close()
	writing, enough := context.WithCancel(ctx)
	defer enough()
	done := make(chan struct{})
	sched.Real().Go(func() { defer close(done); l.run(writing, ctx) })
	defer func() { <-done }()
	defer enough()

	for _, n := range nodes[1:] {
		if err := n.start("", 0); err != nil {
			return r, err
		}
	}
	for round := range c.Rounds {
		if err := r.round(ctx, c, nodes, round); err != nil {
			return r, fmt.Errorf("round %d: %w", round, err)
		}
	}
	for _, n := range nodes {
		if !n.alive() {
			if err := n.start("", 0); err != nil {
				return r, err
			}
		}
	}
	enough()
	<-done
	c.Log("every write that was begun is accepted")
	settling, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	l.settle(settling)
	c.Log("every event was waited for")
	for _, n := range nodes {
		if err := n.stop(); err != nil {
			return r, err
		}
	}
	s, err := c.Read(ctx)
	if err != nil {
		return r, err
	}
	return r, judge(s, l.accepted, &r)
}

// round starts one server, lets it die, and looks at what it left.
func (r *Result) round(ctx context.Context, c Config, nodes []*node, round int) error {
	n := nodes[round%len(nodes)]
	n.kill()
	// Every second round kills at a point, each in its turn; then the time is
	// only for a point that is not reached.
	point, most := protocol.Point(""), time.Duration(20+sched.Real().Uint64()%230)*time.Millisecond
	if round%2 == 1 {
		point, most = Points[(round/2)%len(Points)], 20*time.Second
	}
	if err := n.start(point, 1+int(sched.Real().Uint64()%12)); err != nil {
		return err
	}
	waited := sched.Real().Wait(ctx, most, n.dead)
	if waited != nil && !errors.Is(waited, sched.ErrElapsed) {
		return waited
	}
	n.kill()
	if n.point != "" {
		r.Fired[n.point]++
	}
	c.Log("round %d: killed at %q after at most %v", round, n.point, most)
	if c.Between != nil {
		if err := c.Between(ctx, round); err != nil {
			return err
		}
	}
	// What a crash leaves holds every invariant a snapshot can show.
	if round%5 == 4 {
		s, err := c.Read(ctx)
		if err != nil {
			return err
		}
		if err := protocol.Check(s); err != nil {
			return err
		}
	}
	if len(nodes) > 1 {
		return n.start("", 0)
	}
	return nil
}
