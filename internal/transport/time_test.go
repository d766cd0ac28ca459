package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// bench is a client in a synctest bubble and the server it talks to, a
// function that is told how many requests came before.
type bench struct {
	*Client
	mu     sync.Mutex
	answer func(n int, req *http.Request) (status int, header http.Header, err error)
	sent   []time.Duration // since the beginning
	names  []string        // the calls, in the order they were sent
	events []Event
	begin  time.Time
}

func newBench(t *testing.T, p Policy, answer func(int, *http.Request) (int, http.Header, error)) *bench {
	t.Helper()
	b := &bench{answer: answer, begin: time.Now()}
	base, _ := url.Parse("http://server.example")
	c, err := New(Config{
		BaseURL: base, Policy: p, HTTPClient: &http.Client{Transport: b}, Classify: byStatus,
		Observe: func(e Event) {
			b.mu.Lock()
			b.events = append(b.events, e)
			b.mu.Unlock()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Client = c
	return b
}

func (b *bench) RoundTrip(req *http.Request) (*http.Response, error) {
	b.mu.Lock()
	n := len(b.sent)
	b.sent = append(b.sent, time.Since(b.begin))
	b.names = append(b.names, req.Header.Get("Name"))
	b.mu.Unlock()
	status, header, err := b.answer(n, req)
	if err != nil {
		return nil, err
	}
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: status, Header: header, Body: http.NoBody, Request: req}, nil
}

func (b *bench) call(ctx context.Context, name string) (*Result, error) {
	req, _ := http.NewRequest(http.MethodPost, "http://server.example/write?q=1", nil)
	req.Header.Set("Name", name)
	return b.Do(ctx, Call{Op: "write", Method: req.Method, URL: req.URL, Header: req.Header, Safe: name != "unsafe"})
}

func (b *bench) sentAt() []time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.sent)
}

func (b *bench) tokens() int {
	b.budget.mu.Lock()
	defer b.budget.mu.Unlock()
	return b.budget.tokens
}

func (b *bench) count(kind EventKind) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

func byStatus(a *Answer) Decision {
	d := Decision{Class: Final, Reason: "http_" + strconv.Itoa(a.Status)}
	switch {
	case a.Status < 300:
		d.Class = Success
	case a.Status == 429:
		d.Class = Throttled
	case a.Status == 409:
		d.Class = InProgress
	case a.Status >= 500:
		d.Class = Server
	}
	d.Hint, d.HasHint = ServerWait(a.Header, a.Received)
	return d
}

func always(status int, retryAfter string) func(int, *http.Request) (int, http.Header, error) {
	return func(int, *http.Request) (int, http.Header, error) {
		h := http.Header{}
		if retryAfter != "" {
			h.Set("Retry-After", retryAfter)
		}
		return status, h, nil
	}
}

// until answers 503 before the given time and 200 after it.
func until(d time.Duration) func(int, *http.Request) (int, http.Header, error) {
	end := time.Now().Add(d)
	return func(int, *http.Request) (int, http.Header, error) {
		time.Sleep(10 * time.Millisecond)
		if time.Now().Before(end) {
			return 503, nil, nil
		}
		return 200, nil, nil
	}
}

func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, f)
	})
}

func failureOf(t *testing.T, err error) *Failure {
	t.Helper()
	var f *Failure
	if !errors.As(err, &f) {
		t.Fatalf("got %v, want a *Failure", err)
	}
	return f
}

func TestTries(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status, tries int
		class         Class
	}{{200, 1, Success}, {400, 1, Final}, {409, 5, InProgress}, {429, 5, Throttled}, {500, 5, Server}, {503, 5, Server}} {
		bubble(t, strconv.Itoa(tc.status), func(t *testing.T) {
			b := newBench(t, Policy{}, always(tc.status, ""))
			_, err := b.call(t.Context(), "")
			if len(b.sent) != tc.tries {
				t.Errorf("%d tries, want %d", len(b.sent), tc.tries)
			}
			if tc.class == Success {
				if err != nil {
					t.Error(err)
				}
				return
			}
			f := failureOf(t, err)
			if f.Decision.Class != tc.class || f.Tries != tc.tries || f.Answer.Status != tc.status || f.Unsent || !f.Written {
				t.Errorf("got %+v", f)
			}
			for i := 1; i < len(b.sent); i++ {
				if wait := b.sent[i] - b.sent[i-1]; wait < 20*time.Millisecond {
					t.Errorf("wait %d is %v, below the floor", i, wait)
				}
			}
		})
	}
	bubble(t, "a write without an identity is sent once", func(t *testing.T) {
		b := newBench(t, Policy{}, always(503, ""))
		_, err := b.call(t.Context(), "unsafe")
		if f := failureOf(t, err); f.Tries != 1 || len(b.sent) != 1 {
			t.Errorf("%d tries", len(b.sent))
		}
	})
	bubble(t, "a try that times out is tried again", func(t *testing.T) {
		b := newBench(t, Policy{}, func(n int, req *http.Request) (int, http.Header, error) {
			if n == 0 {
				<-req.Context().Done()
				return 0, nil, req.Context().Err()
			}
			return 200, nil, nil
		})
		res, err := b.call(t.Context(), "")
		if err != nil || res.Tries != 2 || b.sent[1] < 30*time.Second || b.sent[1] > 31*time.Second {
			t.Errorf("%v, %v, sent at %v", res, err, b.sent)
		}
	})
	bubble(t, "a strategy that stops ends the call", func(t *testing.T) {
		b := newBench(t, Policy{NewBackOff: func() backoff.BackOff { return &backoff.StopBackOff{} }}, always(503, ""))
		if _, err := b.call(t.Context(), ""); failureOf(t, err).Tries != 1 {
			t.Error(err)
		}
	})
	bubble(t, "an empty budget stops retries and never calls", func(t *testing.T) {
		b := newBench(t, Policy{Budget: BudgetPolicy{Tokens: 14}, Gate: GatePolicy{Off: true}}, always(503, ""))
		_, _ = b.call(t.Context(), "")
		before := len(b.sent)
		_, err := b.call(t.Context(), "")
		if len(b.sent) != before+1 || !errors.Is(err, ErrBudget) {
			t.Errorf("%d tries more, %v", len(b.sent)-before, err)
		}
	})
}

func TestServerWaitIsObeyedOrRefused(t *testing.T) {
	t.Parallel()
	bubble(t, "waits at least as long as asked", func(t *testing.T) {
		b := newBench(t, Policy{}, func(n int, _ *http.Request) (int, http.Header, error) {
			return []int{429, 200}[n], http.Header{"Retry-After": {"60"}}, nil
		})
		if _, err := b.call(t.Context(), ""); err != nil || b.sent[1] < time.Minute || b.sent[1] > 61*time.Second+time.Millisecond {
			t.Errorf("%v, sent at %v", err, b.sent)
		}
	})
	for _, status := range []int{429, 503} {
		bubble(t, fmt.Sprintf("%d asks for an hour", status), func(t *testing.T) {
			b := newBench(t, Policy{}, always(status, "3600"))
			_, err := b.call(t.Context(), "")
			if f := failureOf(t, err); f.Wait != time.Hour || !errors.Is(err, ErrServerWait) || time.Since(b.begin) > 0 {
				t.Errorf("%+v after %v", f, time.Since(b.begin))
			}
		})
		bubble(t, fmt.Sprintf("%d asks for more than the deadline leaves", status), func(t *testing.T) {
			b := newBench(t, Policy{}, always(status, "60"))
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_, err := b.call(ctx, "")
			f := failureOf(t, err)
			if !errors.Is(err, context.DeadlineExceeded) || f.Answer == nil || f.Answer.Status != status || f.Wait < time.Minute || time.Since(b.begin) > 0 {
				t.Errorf("%+v (%v) after %v", f, err, time.Since(b.begin))
			}
		})
	}
	bubble(t, "the deadline ends a try: the answer of the try before is kept", func(t *testing.T) {
		b := newBench(t, Policy{}, func(n int, req *http.Request) (int, http.Header, error) {
			if n == 0 {
				return 503, nil, nil
			}
			<-req.Context().Done()
			return 0, nil, req.Context().Err()
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := b.call(ctx, "")
		f := failureOf(t, err)
		if !errors.Is(err, context.DeadlineExceeded) || f.Answer == nil || f.Answer.Status != 503 || f.Tries != 2 || f.Decision.Class != NoAnswer {
			t.Errorf("%+v", f)
		}
		time.Sleep(time.Minute)
		if len(b.sent) != 2 {
			t.Errorf("%d requests after the end", len(b.sent)-2)
		}
	})
	bubble(t, "cancelling ends a wait at once, with the cause and the answer", func(t *testing.T) {
		b := newBench(t, Policy{}, always(503, "60"))
		cause := errors.New("the worker shuts down")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		_, err := b.call(ctx, "")
		if f := failureOf(t, err); !errors.Is(err, cause) || f.Answer.Status != 503 || time.Since(b.begin) != time.Second || len(b.sent) != 1 {
			t.Errorf("%v after %v", err, time.Since(b.begin))
		}
	})
}
