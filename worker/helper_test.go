package worker_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/mockserver"
	"github.com/memwrite/memwrite-go/worker"
)

// note is a message with one fact.
func note(id, user, text string) worker.Delivery {
	return message(map[string]any{"kind": "note", "id": id, "end_user": user, "text": text})
}

func inferred(id, user, text string) worker.Delivery {
	return message(map[string]any{"write": "infer", "kind": "note", "id": id, "end_user": user, "text": text})
}

func message(fields map[string]any) worker.Delivery {
	data, _ := json.Marshal(fields)
	return worker.Delivery{Data: data, Source: "test", Attempt: 1}
}

func fact(i int) string {
	return fmt.Sprintf("Customer number %d prefers invoices on day %d of the month.", i, i)
}

// inBubble is a server without a listener, and a worker that writes to it.
func inBubble(t *testing.T, cfg worker.Config, opts ...mockserver.Option) (*mockserver.Server, *worker.Worker) {
	t.Helper()
	srv := mockserver.Run(t, append([]mockserver.Option{mockserver.InProcess()}, opts...)...)
	return srv, newWorker(t, srv.Client(t), cfg)
}

func newWorker(t *testing.T, client *memwrite.Client, cfg worker.Config) *worker.Worker {
	t.Helper()
	w, err := worker.New(client, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(t.Context()) })
	return w
}

// wire is a service in a function. It counts what is inside at one time.
type wire struct {
	answer func(n int, r *http.Request, body []byte) (status int, answer string)

	mu     sync.Mutex
	n      int
	inside int
	most   int
	times  []time.Time
	bodies []string
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r.Body.Close()
	}
	w.mu.Lock()
	w.n++
	n := w.n
	w.inside++
	w.most = max(w.most, w.inside)
	w.times = append(w.times, time.Now())
	w.bodies = append(w.bodies, string(body))
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.inside--
		w.mu.Unlock()
	}()
	status, answer := w.answer(n, r, body)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader([]byte(answer))), Request: r,
	}, nil
}

func (w *wire) requests() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n
}

// worker is one that writes to the wire.
func (w *wire) worker(t *testing.T, cfg worker.Config) *worker.Worker {
	t.Helper()
	client, err := memwrite.New(
		memwrite.WithMemorySync("http://memorysync.test", "ms_5ecret0000"), memwrite.WithFishMem("http://fishmem.test", "fm_5ecret1111"),
		memwrite.WithHTTPClient(&http.Client{Transport: w}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return newWorker(t, client, cfg)
}

const stored = `{"id":1,"text":"t"}`

func want(t *testing.T, out worker.Outcome, action memwrite.Action) {
	t.Helper()
	if out.Action != action {
		t.Fatalf("outcome %v (%s), error %v, want %v", out.Action, out.Reason, out.Err, action)
	}
}
