package transport

import (
	"context"
	"errors"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// scripted answers by the number of the request; the last answer stays.
func scripted(steps ...func() (int, http.Header, error)) func(int, *http.Request) (int, http.Header, error) {
	return func(n int, _ *http.Request) (int, http.Header, error) { return steps[min(n, len(steps)-1)]() }
}

func status(code int, header ...string) func() (int, http.Header, error) {
	return func() (int, http.Header, error) {
		h := http.Header{}
		for i := 0; i+1 < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return code, h, nil
	}
}

func TestEdgesOfAPause(t *testing.T) {
	t.Parallel()
	bubble(t, "the longest wait allowed is waited", func(t *testing.T) {
		for range 50 { // with every jitter
			b := newBench(t, Policy{}, scripted(status(429, "Retry-After", "90"), status(200)))
			if _, err := b.call(t.Context(), ""); err != nil || b.sent[1] < 90*time.Second || b.sent[1] > 91*time.Second+time.Millisecond {
				t.Fatalf("%v, sent at %v", err, b.sent)
			}
		}
	})
	bubble(t, "a second pause that a call cannot outlast ends it at once", func(t *testing.T) {
		b := newBench(t, Policy{}, always(429, "60"))
		_, err := b.call(t.Context(), "")
		f := failureOf(t, err)
		if d := time.Since(b.begin); d > 63*time.Second || !errors.Is(err, ErrGate) || f.Wait < 59*time.Second || f.Tries != 2 {
			t.Errorf("%+v after %v", f, d)
		}
	})
	bubble(t, "cancelling a call in it ends that one and no other", func(t *testing.T) {
		b := newBench(t, Policy{}, scripted(status(429, "Retry-After", "40"), status(200)))
		go func() { _, _ = b.call(t.Context(), "first") }()
		time.Sleep(time.Second)
		cause := errors.New("stopped")
		var calls sync.WaitGroup
		for i := range 6 {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			calls.Go(func() {
				_, err := b.call(ctx, "")
				if i%2 == 0 {
					if f := failureOf(t, err); !errors.Is(err, cause) || !f.Unsent || time.Since(b.begin) != 2*time.Second {
						t.Errorf("%+v after %v", f, time.Since(b.begin))
					}
				} else if err != nil {
					t.Error(err)
				}
			})
			if i%2 == 0 {
				time.AfterFunc(2*time.Second-time.Since(b.begin), func() { cancel(cause) })
			}
		}
		calls.Wait()
	})
	bubble(t, "the first call after it may hang; the next finds out", func(t *testing.T) {
		b := newBench(t, Policy{}, func(n int, req *http.Request) (int, http.Header, error) {
			switch n {
			case 0:
				return 429, http.Header{"Retry-After": {"5"}}, nil
			case 1:
				<-req.Context().Done()
				return 0, nil, req.Context().Err()
			}
			return 200, nil, nil
		})
		var calls sync.WaitGroup
		for range 5 {
			calls.Go(func() {
				if _, err := b.call(t.Context(), ""); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(time.Millisecond)
		}
		calls.Wait()
		if d := time.Since(b.begin); d < 35*time.Second || d > 45*time.Second {
			t.Errorf("took %v", d)
		}
	})
	bubble(t, "a hint of nothing still leaves the floor between requests", func(t *testing.T) {
		b := newBench(t, Policy{Budget: BudgetPolicy{Off: true}}, always(429, "0"))
		_, _ = b.call(t.Context(), "")
		for i := 1; i < len(b.sent); i++ {
			if gap := b.sent[i] - b.sent[i-1]; gap < 20*time.Millisecond {
				t.Errorf("try %d came %v after the last", i+1, gap)
			}
		}
	})
}

func TestEdgesOfADeadline(t *testing.T) {
	t.Parallel()
	bubble(t, "one that ends with the wait is not waited for", func(t *testing.T) {
		p := Policy{NewBackOff: func() backoff.BackOff { return backoff.NewConstantBackOff(5 * time.Second) }}
		b := newBench(t, p, always(503, ""))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := b.call(ctx, "")
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(b.begin) != 0 || !strings.Contains(err.Error(), "a wait of 5s") || failureOf(t, err).Wait != 0 {
			t.Errorf("%v after %v", err, time.Since(b.begin))
		}
	})
	bubble(t, "one shorter than the try's timeout is the caller's", func(t *testing.T) {
		b := newBench(t, Policy{}, func(_ int, req *http.Request) (int, http.Header, error) {
			<-req.Context().Done()
			return 0, nil, req.Context().Err()
		})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := b.call(ctx, "")
		if f := failureOf(t, err); errors.Is(err, ErrTryTimeout) || !errors.Is(err, context.DeadlineExceeded) || f.Tries != 1 || f.Decision.Reason != "context" && f.Decision.Reason != "timeout" {
			t.Errorf("%+v", f)
		}
	})
	bubble(t, "one of the same moment as the try's ends the call", func(t *testing.T) {
		b := newBench(t, Policy{TryTimeout: 3 * time.Second}, func(_ int, req *http.Request) (int, http.Header, error) {
			<-req.Context().Done()
			return 0, nil, req.Context().Err()
		})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := b.call(ctx, "")
		if f := failureOf(t, err); !errors.Is(err, context.DeadlineExceeded) || f.Tries != 1 || time.Since(b.begin) != 3*time.Second {
			t.Errorf("%+v after %v", f, time.Since(b.begin))
		}
	})
	bubble(t, "a cancelled probe does not keep its rank", func(t *testing.T) {
		b := newBench(t, Policy{}, until(8*time.Second))
		var calls sync.WaitGroup
		var results [10]error
		b.shutGate(t, &calls, &results)
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			calls.Go(func() {
				defer cancel()
				_, _ = b.call(ctx, "")
			})
			time.Sleep(50 * time.Millisecond)
		}
		calls.Wait()
		if err := errors.Join(results[:]...); err != nil {
			t.Error(err)
		}
		if b.gate.queue.Len() != 0 || b.gate.probe != nil {
			t.Errorf("%d wait, probe %v", b.gate.queue.Len(), b.gate.probe)
		}
	})
}

// Without the gate a probe that fails after a pause is a try like any other.
func TestAFailedProbeWithoutTheGateBacksOff(t *testing.T) {
	t.Parallel()
	bubble(t, "503 after 429", func(t *testing.T) {
		b := newBench(t, Policy{Gate: GatePolicy{Off: true}}, scripted(status(429, "Retry-After", "5"), status(503)))
		_, err := b.call(t.Context(), "")
		if f := failureOf(t, err); f.Tries != 5 {
			t.Errorf("%d tries", f.Tries)
		}
		for i := 2; i < len(b.sent); i++ {
			if gap := b.sent[i] - b.sent[i-1]; gap < 20*time.Millisecond {
				t.Errorf("try %d came %v after the last", i+1, gap)
			}
		}
	})
}

// One try means one: a shut gate makes calls wait, and never sends one again
// that was sent.
func TestOneTryIsOne(t *testing.T) {
	t.Parallel()
	bubble(t, "behind a gate", func(t *testing.T) {
		b := newBench(t, Policy{MaxTries: 1}, until(5*time.Second))
		var calls sync.WaitGroup
		for range 40 {
			calls.Go(func() {
				res, err := b.call(t.Context(), "")
				if err == nil && res.Tries != 1 || err != nil && failureOf(t, err).Tries > 1 {
					t.Errorf("%+v, %v", res, err)
				}
			})
			time.Sleep(5 * time.Millisecond)
		}
		calls.Wait()
		if b.count(Retry) != 0 {
			t.Errorf("%d retries", b.count(Retry))
		}
	})
	for _, code := range []int{409, 429, 503} {
		bubble(t, http.StatusText(code), func(t *testing.T) {
			b := newBench(t, Policy{MaxTries: 1}, always(code, "1"))
			if _, err := b.call(t.Context(), ""); failureOf(t, err).Tries != 1 || time.Since(b.begin) != 0 {
				t.Errorf("%v after %v", err, time.Since(b.begin))
			}
		})
	}
}

// A strategy counts the tries a call spends, not the probes of the gate.
func TestAStrategyIsNotUsedUpAtTheGate(t *testing.T) {
	t.Parallel()
	bubble(t, "three retries", func(t *testing.T) {
		p := Policy{NewBackOff: func() backoff.BackOff {
			return backoff.WithMaxRetries(backoff.NewConstantBackOff(100*time.Millisecond), 3)
		}}
		b := newBench(t, p, until(20*time.Second))
		var calls sync.WaitGroup
		var results [10]error
		b.shutGate(t, &calls, &results)
		calls.Wait()
		if err := errors.Join(results[:]...); err != nil {
			t.Error(err)
		}
	})
}

// A jar's cookies are those of the last answer, once.
func TestCookiesAreNotRepeated(t *testing.T) {
	t.Parallel()
	connections(t, func(t *testing.T, close bool) {
		var mu sync.Mutex
		var got []string
		s := newWire(t, close, func(w http.ResponseWriter, r *http.Request, n int) {
			mu.Lock()
			got = append(got, r.Header.Get("Cookie"))
			mu.Unlock()
			http.SetCookie(w, &http.Cookie{Name: "lb", Value: "a"})
			if n < 3 {
				w.WriteHeader(503)
			}
		})
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		base, _ := url.Parse(s.URL)
		c, err := New(Config{
			BaseURL: base, Classify: byStatus, HTTPClient: &http.Client{Jar: jar},
			Policy: Policy{Base: time.Millisecond, Floor: time.Millisecond},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.post(t, c); err != nil {
			t.Fatal(err)
		}
		for i, cookie := range got {
			if want := map[bool]string{true: "", false: "lb=a"}[i == 0]; cookie != want {
				t.Errorf("try %d carries %q", i+1, cookie)
			}
		}
	})
}
