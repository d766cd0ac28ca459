package inspector

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

const (
	// recorded bounds the requests that are kept; the oldest go first.
	recorded = 2000
	// ahead bounds the part of a body that is read for its hash and identity.
	ahead = 1 << 20
)

// Recorder keeps the latest requests of a server that has no journal, without
// their bodies. It is safe for concurrent use.
type Recorder struct {
	// Now is the server's clock.
	Now func() time.Time
	// Identify reads the identity off a request: its form and its hash.
	Identify func(r *http.Request, body []byte) (form string, h protocol.Hash)

	mu   sync.Mutex
	seq  int
	kept []*Request
}

// Requests is what is kept, oldest first.
func (c *Recorder) Requests() []Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]Request, len(c.kept))
	for n, r := range c.kept {
		out[n] = *r
	}
	return out
}

// Wrap records what a handler is asked and how it answers.
func (c *Recorder) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, ahead))
		rest := r.Body
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(body), after{err, rest}), rest}
		entry := c.open(r, body)
		out := &statusWriter{ResponseWriter: w}
		ended := false
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			entry.Status = out.status
			entry.Dropped = !ended || r.Context().Err() != nil
		}()
		next.ServeHTTP(out, r)
		ended = true
	})
}

func (c *Recorder) open(r *http.Request, body []byte) *Request {
	entry := &Request{At: c.Now(), Method: r.Method, Path: r.URL.EscapedPath()}
	entry.Identity, entry.Hash = c.Identify(r, body)
	if len(body) > 0 {
		entry.Body = sha256.Sum256(body)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seq++
	entry.Seq = c.seq
	if len(c.kept) >= recorded {
		c.kept = append(c.kept[:0], c.kept[1:]...)
	}
	c.kept = append(c.kept, entry)
	return entry
}

// after goes on with a body behind the part that was read, or gives the error
// that reading it ended with.
type after struct {
	err  error
	rest io.Reader
}

func (a after) Read(p []byte) (int, error) {
	if a.err != nil && !errors.Is(a.err, io.EOF) {
		return 0, a.err
	}
	return a.rest.Read(p)
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (s *statusWriter) WriteHeader(status int) {
	if s.status == 0 {
		s.status = status
	}
	s.ResponseWriter.WriteHeader(status)
}

func (s *statusWriter) Write(p []byte) (int, error) {
	if s.status == 0 {
		s.status = http.StatusOK
	}
	return s.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController find the writer below.
func (s *statusWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }
