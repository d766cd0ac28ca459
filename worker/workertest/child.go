package workertest

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/worker"
)

// What the worker process is told by its parent.
const (
	envURL   = "MEMWRITE_DRILL_URL"
	envMS    = "MEMWRITE_DRILL_MEMORYSYNC_KEY"
	envFM    = "MEMWRITE_DRILL_FISHMEM_KEY"
	envCount = "MEMWRITE_DRILL_COUNT" // a file that grows by a byte a delivery
)

// Child tells whether this process is the worker of a drill. A test reads the
// names it gave to its queue from its own environment then, and must not make
// them anew.
func Child() bool { return os.Getenv(envURL) != "" }

// child is the worker process: it works until it is told to end, or killed.
func child(t *testing.T, b Broker) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	count, err := os.OpenFile(os.Getenv(envCount), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = count.Close() }()
	client, err := memwrite.New(
		memwrite.WithMemorySync(os.Getenv(envURL), os.Getenv(envMS)), memwrite.WithFishMem(os.Getenv(envURL), os.Getenv(envFM)),
		memwrite.WithRetryPolicy(memwrite.RetryPolicy{
			MaxTries: 3, Base: 20 * time.Millisecond, ThrottledBase: 50 * time.Millisecond, Cap: 200 * time.Millisecond,
			TryTimeout: 5 * time.Second, GateWait: time.Second,
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	cfg := b.Config
	orElse(&cfg.Concurrency, 8)
	orElse(&cfg.Patience, 5*time.Second)
	orElse(&cfg.ProbeEvery, 200*time.Millisecond)
	orElse(&cfg.ProbeMost, time.Second)
	orElse(&cfg.RetryBase, 100*time.Millisecond)
	orElse(&cfg.RetryMost, time.Second)
	cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil)) // its end is shown when the drill is short
	cfg.Decode = func(data []byte) (worker.Record, error) {
		_, _ = count.Write([]byte{'.'})
		return worker.Decode(data)
	}
	if err := b.Worker(ctx, client, cfg); err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
}

func orElse[T int | time.Duration](v *T, def T) {
	if *v == 0 {
		*v = def
	}
}

// process is a worker process as its parent sees it.
type process struct {
	cmd  *exec.Cmd
	log  *tail
	gone chan error
}

func (d *drill) start() *process {
	cmd := exec.Command(os.Args[0], "-test.run=^"+d.t.Name()+"$", "-test.count=1", "-test.timeout=10m")
	cmd.Env = append(os.Environ(), d.b.Env...)
	cmd.Env = append(cmd.Env, envURL+"="+d.srv.URL, envMS+"="+d.srv.MemorySyncKey, envFM+"="+d.srv.FishMemKey, envCount+"="+d.count)
	log := &tail{}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	p := &process{cmd: cmd, log: log, gone: make(chan error, 1)}
	go func() {
		err := cmd.Wait()
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, log)
		}
		p.gone <- err
	}()
	d.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return p
}

// kill is SIGKILL: nothing of the process runs afterwards.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.wait() // it says that the process was killed
}

func (p *process) wait() error { return <-p.gone }

// end asks the process to drain, and waits for it.
func (p *process) end(d time.Duration) error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-p.gone:
		return err
	case <-time.After(d):
		p.kill()
		return fmt.Errorf("the worker did not drain in %v", d)
	}
}

// tail keeps the end of a process's output.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if n := len(t.buf); n > 8<<10 {
		t.buf = append(t.buf[:0], t.buf[n-4<<10:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
