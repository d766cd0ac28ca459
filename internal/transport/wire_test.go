package transport

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// wire is a real server on a real listener. It counts connections and keeps
// what it was sent.
type wire struct {
	*httptest.Server
	conns  atomic.Int64
	mu     sync.Mutex
	sums   []string // of each request's body
	tries  []string // Memwrite-Try
	method []string
}

// newWire starts a server that answers with serve, n being how many requests
// came before. close makes it end each connection after its answer.
func newWire(t *testing.T, close bool, serve func(w http.ResponseWriter, r *http.Request, n int)) *wire {
	t.Helper()
	s := &wire{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		n := len(s.sums)
		s.sums = append(s.sums, fmt.Sprintf("%x", sha256.Sum256(body)))
		s.tries = append(s.tries, r.Header.Get("Memwrite-Try"))
		s.method = append(s.method, r.Method)
		s.mu.Unlock()
		if close {
			w.Header().Set("Connection", "close")
		}
		serve(w, r, n)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.conns.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func (s *wire) client(t *testing.T, p Policy) *Client {
	t.Helper()
	base, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	if p.Base == 0 {
		p.Base, p.UnwrittenBase, p.Floor = time.Millisecond, time.Millisecond, time.Millisecond
	}
	c, err := New(Config{BaseURL: base, Policy: p, Classify: byStatus, UserAgent: "memwrite-test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

const text = `{"text":"the customer prefers mail"}`

func (s *wire) post(t *testing.T, c *Client) (*Result, error) {
	t.Helper()
	to, err := url.Parse(s.URL + "/write?secret=1")
	if err != nil {
		t.Fatal(err)
	}
	return c.Do(t.Context(), Call{
		Op: "write", Method: http.MethodPost, URL: to, Header: http.Header{"X-Api-Key": {"key"}}, Body: []byte(text), Safe: true,
	})
}

// connections runs a test on connections that are kept and on such that are
// closed after each answer: net/http hides some faults on the former.
func connections(t *testing.T, f func(t *testing.T, close bool)) {
	for _, close := range []bool{false, true} {
		t.Run(map[bool]string{false: "keep-alive", true: "close"}[close], func(t *testing.T) {
			t.Parallel()
			f(t, close)
		})
	}
}

func TestEveryTrySendsTheSameBytes(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(http.ResponseWriter){
		"status": func(w http.ResponseWriter) { w.WriteHeader(503) },
		"cut body": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"id":`)
		},
		"dropped": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			connections(t, func(t *testing.T, close bool) {
				s := newWire(t, close, func(w http.ResponseWriter, _ *http.Request, n int) {
					if n < 2 {
						fail(w)
						return
					}
					_, _ = io.WriteString(w, "stored")
				})
				res, err := s.post(t, s.client(t, Policy{}))
				if err != nil {
					t.Fatal(err)
				}
				want := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
				for i, sum := range s.sums {
					if sum != want || s.tries[i] != strconv.Itoa(i+1) {
						t.Errorf("request %d: body %.8s, try %s", i, sum, s.tries[i])
					}
				}
				if string(res.Answer.Body) != "stored" || res.Tries != 3 || len(s.sums) != 3 {
					t.Errorf("%q after %d tries, %d requests", res.Answer.Body, res.Tries, len(s.sums))
				}
			})
		})
	}
}

// Status by body by hint: what counts is how often the server is asked.
func TestTriesOverTheWire(t *testing.T) {
	t.Parallel()
	bodies := map[string]string{"json": `{"error":"x"}`, "html": "<html>no</html>", "empty": "", "cut": "cut"}
	for status, tries := range map[int]int{200: 1, 400: 1, 401: 1, 409: 3, 429: 3, 500: 3, 502: 3, 503: 3} {
		for kind, body := range bodies {
			for _, hint := range []string{"", "0", "nonsense"} {
				t.Run(fmt.Sprintf("%d %s %q", status, kind, hint), func(t *testing.T) {
					t.Parallel()
					connections(t, func(t *testing.T, close bool) {
						s := newWire(t, close, func(w http.ResponseWriter, _ *http.Request, _ int) {
							if hint != "" {
								w.Header().Set("Retry-After", hint)
							}
							if kind == "cut" {
								w.Header().Set("Content-Length", "9")
							}
							w.WriteHeader(status)
							_, _ = io.WriteString(w, body)
						})
						want := tries
						if status == 200 && kind == "cut" {
							want = 3
						}
						c := s.client(t, Policy{MaxTries: 3, ThrottledBase: time.Millisecond})
						res, err := s.post(t, c)
						if len(s.sums) != want {
							t.Errorf("%d tries, want %d (%v, %v)", len(s.sums), want, res, err)
						}
						if (err == nil) != (status == 200 && kind != "cut") {
							t.Errorf("error %v", err)
						}
						if err != nil {
							if f := failureOf(t, err); f.Answer == nil || f.Answer.Status != status || f.Answer.Truncated != (kind == "cut") {
								t.Errorf("last answer %+v", f.Answer)
							}
							if strings.Contains(err.Error(), "secret") {
								t.Errorf("the error holds the query: %v", err)
							}
						}
					})
				})
			}
		}
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	var strangers atomic.Int64
	stranger := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strangers.Add(1) }))
	t.Cleanup(stranger.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, to := range []string{"/elsewhere?token=1", stranger.URL + "/elsewhere?token=1"} {
			same := strings.HasPrefix(to, "/")
			t.Run(fmt.Sprintf("%d same host %v", status, same), func(t *testing.T) {
				t.Parallel()
				connections(t, func(t *testing.T, close bool) {
					s := newWire(t, close, func(w http.ResponseWriter, r *http.Request, _ int) {
						if r.URL.Path == "/write" {
							w.Header().Set("Location", to)
							w.WriteHeader(status)
						}
					})
					_, err := s.post(t, s.client(t, Policy{}))
					if same && status >= 307 {
						if err != nil || len(s.sums) != 2 || s.sums[0] != s.sums[1] || s.method[1] != http.MethodPost {
							t.Errorf("%v, requests %v", err, s.method)
						}
						return
					}
					f := failureOf(t, err)
					if len(s.sums) != 1 || f.Answer.Status != status || !strings.HasSuffix(f.Answer.Redirect, "/elsewhere") {
						t.Errorf("%d requests, answer %+v", len(s.sums), f.Answer)
					}
				})
			})
		}
	}
	t.Cleanup(func() {
		if n := strangers.Load(); n != 0 {
			t.Errorf("another host got %d requests", n)
		}
	})
}

func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	t.Run("an error without end", func(t *testing.T) {
		t.Parallel()
		s := newWire(t, false, func(w http.ResponseWriter, r *http.Request, _ int) {
			w.WriteHeader(500)
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 32<<10)); err != nil {
					return
				}
			}
		})
		_, err := s.post(t, s.client(t, Policy{MaxTries: 2}))
		f := failureOf(t, err)
		if f.Tries != 2 || !f.Answer.TooLarge || len(f.Answer.Body) != 64<<10 {
			t.Errorf("%d tries, %d bytes", f.Tries, len(f.Answer.Body))
		}
	})
	t.Run("a success too large says so and is not tried again", func(t *testing.T) {
		t.Parallel()
		s := newWire(t, false, func(w http.ResponseWriter, _ *http.Request, _ int) { _, _ = w.Write(make([]byte, 2000)) })
		_, err := s.post(t, s.client(t, Policy{BodyLimit: 1000}))
		if f := failureOf(t, err); f.Decision.Reason != "answer_too_large" || f.Decision.Class != Final || f.Tries != 1 {
			t.Errorf("%+v", f)
		}
	})
	t.Run("exactly the limit is whole", func(t *testing.T) {
		t.Parallel()
		s := newWire(t, false, func(w http.ResponseWriter, _ *http.Request, _ int) { _, _ = w.Write(make([]byte, 1000)) })
		if res, err := s.post(t, s.client(t, Policy{BodyLimit: 1000})); err != nil || len(res.Answer.Body) != 1000 {
			t.Error(err)
		}
	})
	t.Run("the limit counts unpacked bytes", func(t *testing.T) {
		t.Parallel()
		var bomb bytes.Buffer
		z := gzip.NewWriter(&bomb)
		_, _ = z.Write(make([]byte, 10<<20))
		_ = z.Close()
		for _, asked := range []bool{true, false} {
			s := newWire(t, false, func(w http.ResponseWriter, _ *http.Request, _ int) {
				w.Header().Set("Content-Encoding", "gzip")
				_, _ = w.Write(bomb.Bytes())
			})
			c := s.client(t, Policy{BodyLimit: 1 << 20})
			c.owned.DisableCompression = !asked
			_, err := s.post(t, c)
			if f := failureOf(t, err); !f.Answer.TooLarge || len(f.Answer.Body) != 1<<20 {
				t.Errorf("asked %v: %+v", asked, f.Decision)
			}
		}
	})
	t.Run("a slow body within the try's timeout arrives whole", func(t *testing.T) {
		t.Parallel()
		s := newWire(t, false, func(w http.ResponseWriter, _ *http.Request, _ int) {
			for range 16 {
				_, _ = w.Write(make([]byte, 64<<10))
				w.(http.Flusher).Flush()
				runtime.Gosched()
			}
		})
		if res, err := s.post(t, s.client(t, Policy{TryTimeout: 20 * time.Second})); err != nil || len(res.Answer.Body) != 1<<20 {
			t.Error(err)
		}
	})
}

func TestATimeoutOfTheHTTPClientBoundsATryAndNotTheCall(t *testing.T) {
	t.Parallel()
	connections(t, func(t *testing.T, close bool) {
		s := newWire(t, close, func(_ http.ResponseWriter, r *http.Request, n int) {
			if n == 0 {
				<-r.Context().Done()
			}
		})
		base, _ := url.Parse(s.URL)
		c, err := New(Config{
			BaseURL: base, Classify: byStatus, Policy: Policy{Base: time.Millisecond},
			HTTPClient: &http.Client{Timeout: 100 * time.Millisecond},
		})
		if err != nil {
			t.Fatal(err)
		}
		if res, err := s.post(t, c); err != nil || res.Tries != 2 {
			t.Errorf("%v, %v", res, err)
		}
	})
}

func TestADeadContextSendsNothing(t *testing.T) {
	t.Parallel()
	s := newWire(t, false, func(http.ResponseWriter, *http.Request, int) {})
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	req, _ := http.NewRequest(http.MethodPost, s.URL, nil)
	_, err := s.client(t, Policy{}).Do(ctx, Call{Op: "write", Method: req.Method, URL: req.URL, Header: req.Header, Safe: true})
	if f := failureOf(t, err); !errors.Is(err, gone) || !f.Unsent || len(s.sums) != 0 {
		t.Errorf("%+v, %d requests", f, len(s.sums))
	}
}

func TestAnotherHostIsRefused(t *testing.T) {
	t.Parallel()
	s := newWire(t, false, func(http.ResponseWriter, *http.Request, int) {})
	req, _ := http.NewRequest(http.MethodPost, "http://elsewhere.example/", nil)
	_, err := s.client(t, Policy{}).Do(t.Context(), Call{Op: "write", Method: req.Method, URL: req.URL, Header: req.Header, Safe: true})
	if f := failureOf(t, err); !f.Unsent || f.Decision.Class != Final || f.Written {
		t.Errorf("%+v", f)
	}
}

func TestARefusedConnectionWroteNothing(t *testing.T) {
	t.Parallel()
	s := newWire(t, false, func(http.ResponseWriter, *http.Request, int) {})
	c := s.client(t, Policy{MaxTries: 2})
	s.Close()
	_, err := s.post(t, c)
	if f := failureOf(t, err); f.Written || f.Tries != 2 || f.Decision.Class != NoAnswer || strings.Contains(err.Error(), "secret") {
		t.Errorf("%+v: %v", f, err)
	}
}
