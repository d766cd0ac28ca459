package natsworker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/contrib/natsworker"
	"github.com/memwrite/memwrite-go/worker"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// embedded is a NATS server of this test, on a free port, with its files.
func embedded(t *testing.T) string {
	t.Helper()
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	if !srv.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server does not start")
	}
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	return srv.ClientURL()
}

// running is a NATS server that was there before: at MEMWRITE_NATS_URL, or on
// the standard port. Without one the test runs on an embedded server, which is
// the same program.
func running(t *testing.T) string {
	t.Helper()
	url := os.Getenv("MEMWRITE_NATS_URL")
	if url == "" {
		url = nats.DefaultURL
	}
	nc, err := nats.Connect(url, nats.Timeout(time.Second))
	if err != nil {
		if os.Getenv("MEMWRITE_NATS_URL") != "" {
			t.Fatal(err)
		}
		t.Logf("no NATS server on the standard port, so an embedded one: %v", err)
		return embedded(t)
	}
	nc.Close()
	return url
}

// queue is a stream of a test.
type queue struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	name   string
	stream jetstream.Stream
}

func (q queue) config() natsworker.Config {
	return natsworker.Config{
		Stream: q.name, Durable: "memwrite", Dead: "dead." + q.name, DeadStream: q.name + "-DEAD", AckWait: 2 * time.Second,
		Worker: worker.Config{RetryBase: 50 * time.Millisecond, RetryMost: 200 * time.Millisecond},
	}
}

func connect(t *testing.T, url, name string) queue {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return queue{nc: nc, js: js, name: name}
}

func newQueue(t *testing.T, url string) queue {
	t.Helper()
	q := connect(t, url, fmt.Sprintf("MEMWRITE-%d-%d", os.Getpid(), time.Now().UnixNano()))
	var err error
	q.stream, err = q.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: q.name, Subjects: []string{"in." + q.name}, Retention: jetstream.WorkQueuePolicy})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		_ = q.js.DeleteStream(ctx, q.name)
		_ = q.js.DeleteStream(ctx, q.name+"-DEAD")
	})
	return q
}

func (q queue) send(ctx context.Context, data []byte) error {
	_, err := q.js.Publish(ctx, "in."+q.name, data)
	return err
}

// inFlight counts what is in the queue: a stream with the policy of a work
// queue drops what is acknowledged or terminated.
func (q queue) inFlight(ctx context.Context) (int, error) {
	info, err := q.stream.Info(ctx)
	if err != nil {
		return 0, err
	}
	return int(info.State.Msgs), nil
}

func (q queue) dead(ctx context.Context) ([]worker.DeadLetter, error) {
	s, err := q.js.Stream(ctx, q.name+"-DEAD")
	if err != nil {
		return nil, err
	}
	info, err := s.Info(ctx)
	if err != nil {
		return nil, err
	}
	var out []worker.DeadLetter
	for n := max(info.State.FirstSeq, 1); n <= info.State.LastSeq; n++ {
		msg, err := s.GetMsg(ctx, n)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var l worker.DeadLetter
		if err := json.Unmarshal(msg.Data, &l); err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return out, nil
}

// run works off a queue until stop is called.
func (q queue) run(t *testing.T, client *memwrite.Client, cfg natsworker.Config) (w *natsworker.Worker, stop func()) {
	t.Helper()
	w, err := natsworker.New(t.Context(), q.js, client, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		done <- nil
	}
	t.Cleanup(stop)
	return w, stop
}

func (q queue) empty(t *testing.T) func() bool {
	return func() bool { n, err := q.inFlight(t.Context()); return err == nil && n == 0 }
}
