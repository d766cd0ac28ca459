package transport

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"
)

// shutGate makes ten calls at once against a server that is down, which shuts
// the gate. They wait at it from then on.
func (b *bench) shutGate(t *testing.T, calls *sync.WaitGroup, results *[10]error) {
	for i := range 10 {
		calls.Go(func() { _, results[i] = b.call(t.Context(), "first") })
	}
	time.Sleep(15 * time.Millisecond)
	if b.count(GateShut) != 1 {
		t.Fatalf("the gate shut %d times", b.count(GateShut))
	}
}

func TestGate(t *testing.T) {
	t.Parallel()
	bubble(t, "saves every call of an outage and lets one at a time find out", func(t *testing.T) {
		b := newBench(t, Policy{}, until(20*time.Second))
		var calls sync.WaitGroup
		var results [10]error
		b.shutGate(t, &calls, &results)
		tokens := b.tokens()
		errs := make([]error, 20)
		for i := range errs {
			time.Sleep(100 * time.Millisecond)
			calls.Go(func() { _, errs[i] = b.call(t.Context(), strconv.Itoa(i)) })
		}
		time.Sleep(10 * time.Second)
		if left := b.tokens(); left != tokens {
			t.Errorf("waiting took %d tokens", tokens-left)
		}
		if probes := len(b.sentAt()) - 10; probes < 3 || probes > 60 {
			t.Errorf("%d probes in 12 s", probes)
		}
		calls.Wait()
		if err := errors.Join(append(errs, results[:]...)...); err != nil {
			t.Error(err)
		}
		// The oldest first: the calls that shut the gate, then the rest in order.
		tail := b.names[len(b.names)-20:]
		for i, name := range tail {
			if name != strconv.Itoa(i) {
				t.Fatalf("sent in the order %v", tail)
			}
		}
		if b.count(GateOpened) != 1 || b.count(Drained) != 1 {
			t.Errorf("opened %d times, drained %d times", b.count(GateOpened), b.count(Drained))
		}
		// One probe answered, 29 calls waiting: 1.2 times the 10 a second before.
		last := b.sent[len(b.sent)-29:]
		if d := last[28] - last[0]; d < 28*time.Second/25 || d > 28*time.Second/11 {
			t.Errorf("29 calls drained in %v", d)
		}
	})
	bubble(t, "a call that never leaves says so after 30 s, with the last answer", func(t *testing.T) {
		b := newBench(t, Policy{}, until(time.Hour))
		var calls sync.WaitGroup
		var results [10]error
		b.shutGate(t, &calls, &results)
		began := time.Now()
		_, err := b.call(t.Context(), "late")
		f := failureOf(t, err)
		if waited := time.Since(began); !f.Unsent || !errors.Is(err, ErrGate) || f.Answer == nil || f.Answer.Status != 503 ||
			f.Decision.Class != Server || f.Tries != 0 || waited < 30*time.Second || waited > 31*time.Second {
			t.Errorf("%+v after %v", f, waited)
		}
		calls.Wait()
		for _, err := range results {
			if f := failureOf(t, err); !errors.Is(err, ErrGate) || f.Unsent {
				t.Errorf("%+v", f)
			}
		}
	})
	bubble(t, "a context ends the wait at once", func(t *testing.T) {
		b := newBench(t, Policy{}, until(time.Hour))
		var calls sync.WaitGroup
		var results [10]error
		b.shutGate(t, &calls, &results)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		_, err := b.call(ctx, "late")
		if f := failureOf(t, err); time.Since(began) != 3*time.Second || !errors.Is(err, context.DeadlineExceeded) || !f.Unsent {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		calls.Wait()
	})
	bubble(t, "a probe whose caller goes away makes room for the next", func(t *testing.T) {
		stuck := make(chan struct{})
		down := until(2 * time.Second)
		b := newBench(t, Policy{}, func(n int, req *http.Request) (int, http.Header, error) {
			if req.Header.Get("Name") == "leaver" {
				close(stuck)
				<-req.Context().Done()
				return 0, nil, req.Context().Err()
			}
			return down(n, req)
		})
		ctx, leave := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		b.gate.mu.Lock()
		b.gate.shut(time.Now(), 0)
		b.gate.mu.Unlock()
		calls.Go(func() { _, _ = b.call(ctx, "leaver") })
		<-stuck
		calls.Go(func() {
			if _, err := b.call(t.Context(), "next"); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Second)
		leave()
		calls.Wait()
	})
	// Workers make their next call when the last one has ended, so behind a
	// gate their rate is the drain's. One that was drawn from the first moments
	// of a client must not stay.
	bubble(t, "workers that an outage met early are soon back at their own rate", func(t *testing.T) {
		b := newBench(t, Policy{}, until(3*time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var workers sync.WaitGroup
		for range 32 {
			workers.Go(func() {
				for ctx.Err() == nil {
					_, _ = b.call(ctx, "")
				}
			})
		}
		workers.Wait()
		inLast := 0
		for _, at := range b.sent {
			if at > 15*time.Second {
				inLast++
			}
		}
		if want := 5 * 3200 * 9 / 10; inLast < want { // 32 workers, 10 ms a call
			t.Errorf("%d calls in the last 5 s, want %d", inLast, want)
		}
	})
	bubble(t, "off: every call finds out for itself", func(t *testing.T) {
		b := newBench(t, Policy{Gate: GatePolicy{Off: true}, Budget: BudgetPolicy{Off: true}}, always(503, ""))
		for range 5 {
			_, _ = b.call(t.Context(), "")
		}
		if len(b.sent) != 25 || b.count(GateShut) != 0 {
			t.Errorf("%d tries", len(b.sent))
		}
	})
}

func TestPause(t *testing.T) {
	t.Parallel()
	limited := func(n int, _ *http.Request) (int, http.Header, error) {
		if n == 0 {
			return 429, http.Header{"Retry-After": {"40"}}, nil
		}
		return 200, nil, nil
	}
	bubble(t, "one 429 keeps every call back, longer than the gate would", func(t *testing.T) {
		b := newBench(t, Policy{}, limited)
		var calls sync.WaitGroup
		for range 20 {
			calls.Go(func() {
				if _, err := b.call(t.Context(), ""); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(time.Millisecond)
		}
		calls.Wait()
		for _, at := range b.sent[1:] {
			if at < 40*time.Second {
				t.Errorf("a call left after %v, inside the pause", at)
			}
		}
		if b.sent[2] == b.sent[1] || b.count(Paused) != 1 || b.count(Resumed) != 1 {
			t.Errorf("sent at %v, paused %d, resumed %d", b.sent, b.count(Paused), b.count(Resumed))
		}
	})
	bubble(t, "a call whose deadline is inside it ends at once, unsent", func(t *testing.T) {
		b := newBench(t, Policy{}, limited)
		go func() { _, _ = b.call(t.Context(), "") }()
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		_, err := b.call(ctx, "")
		f := failureOf(t, err)
		if !f.Unsent || f.Wait != 39*time.Second || f.Answer.Status != 429 || f.Decision.Class != Throttled ||
			!errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 0 {
			t.Errorf("%+v after %v", f, time.Since(began))
		}
		time.Sleep(time.Minute)
	})
	bubble(t, "a server that never stops saying 429 does not keep a call for ever", func(t *testing.T) {
		b := newBench(t, Policy{}, always(429, "5"))
		var calls sync.WaitGroup
		for range 50 {
			calls.Go(func() {
				if _, err := b.call(t.Context(), ""); err == nil {
					t.Error("no error")
				}
			})
		}
		calls.Wait()
		if d := time.Since(b.begin); d > 3*time.Minute {
			t.Errorf("took %v", d)
		}
	})
	bubble(t, "off: only the call that was told waits", func(t *testing.T) {
		b := newBench(t, Policy{Pause: PausePolicy{Off: true}}, limited)
		go func() { _, _ = b.call(t.Context(), "") }()
		time.Sleep(time.Second)
		if _, err := b.call(t.Context(), ""); err != nil || b.sentAt()[1] != time.Second {
			t.Errorf("%v, sent at %v", err, b.sentAt())
		}
		time.Sleep(time.Minute)
	})
}
