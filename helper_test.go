package memwrite_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
)

const (
	msKey = "ms_test_5ecret0000"
	fmKey = "fm_5ecret1111"
)

// seen is one request as it arrived.
type seen struct {
	method, path string
	header       http.Header
	body         string
}

// listener is a real server that plays a script and remembers what it was sent.
type listener struct {
	*httptest.Server
	mu   sync.Mutex
	reqs []seen
}

func (l *listener) requests() []seen {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]seen(nil), l.reqs...)
}

// listen serves h, which is told the number of the request from 1.
func listen(t *testing.T, h func(n int, w http.ResponseWriter, r *http.Request)) *listener {
	t.Helper()
	l := &listener{}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		l.mu.Lock()
		l.reqs = append(l.reqs, seen{r.Method, r.URL.Path, r.Header.Clone(), string(b)})
		n := len(l.reqs)
		l.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(b)) // for a handler that wants it again
		h(n, w, r)
	}))
	t.Cleanup(l.Close)
	return l
}

// quick is the default policy with waits a test can sit through.
func quick() memwrite.RetryPolicy {
	return memwrite.RetryPolicy{Base: time.Millisecond, ThrottledBase: time.Millisecond, Floor: time.Millisecond, NoGate: true}
}

func (l *listener) client(t *testing.T, opts ...memwrite.Option) *memwrite.Client {
	t.Helper()
	c, err := memwrite.New(append([]memwrite.Option{
		memwrite.WithMemorySync(l.URL, msKey), memwrite.WithFishMem(l.URL, fmKey), memwrite.WithRetryPolicy(quick()),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

const noteText = "My team ships releases every Thursday."

func theNote() memwrite.AddRequest {
	return memwrite.AddRequest{Text: noteText, EndUserID: "acme", Ref: memwrite.NewRef("note", "0001")}
}

func theInferred() memwrite.InferRequest {
	return memwrite.InferRequest{Key: memwrite.NewRef("note", "0101"), Scope: memwrite.Scope{UserID: "sam"}, Content: noteText}
}

func theTurn() memwrite.TurnRequest {
	return memwrite.TurnRequest{
		TenantID: "default", UserID: "sam", Text: "I ran my first 10K last weekend.",
		Role: "user", Speaker: "sam", OccurredAt: "2026-06-16T09:30:00.000Z",
	}
}

const storedBody = `{"id":66438,"text":"Ships releases every Thursday"}`

func respond(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	io.WriteString(w, body)
}

// bothWays runs a test over kept-alive connections and over closed ones.
func bothWays(t *testing.T, f func(t *testing.T, opt memwrite.Option)) {
	for _, alive := range []bool{true, false} {
		name := "Connection: close"
		if alive {
			name = "keep-alive"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := http.DefaultTransport.(*http.Transport).Clone()
			tr.DisableKeepAlives = !alive
			t.Cleanup(tr.CloseIdleConnections)
			f(t, memwrite.WithHTTPClient(&http.Client{Transport: tr}))
		})
	}
}
