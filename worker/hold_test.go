package worker_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/worker"
)

// A quota that is used up stops the source. One message goes out now and then,
// and when the quota is back everything goes on by itself.
func TestAHoldSendsProbesAloneAndEndsByItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var full atomic.Bool
		full.Store(true)
		service := &wire{answer: func(int, *http.Request, []byte) (int, string) {
			if full.Load() {
				return 200, `{"status":"ok"}`
			}
			return 201, stored
		}}
		w := service.worker(t, worker.Config{Concurrency: 4, InHand: 8})
		began := time.Now()

		// A source: it asks what it may give out, and takes back what is held.
		ctx, stop := context.WithCancel(t.Context())
		var source, given sync.WaitGroup
		var mu sync.Mutex
		acked, handed := 0, 0
		left := 20
		source.Go(func() {
			for {
				n, err := w.Demand(ctx)
				if err != nil {
					return
				}
				mu.Lock()
				n = min(n, left)
				left -= n
				handed += n
				mu.Unlock()
				if n == 0 {
					time.Sleep(time.Second)
				}
				for range n {
					given.Go(func() {
						out := w.Handle(ctx, note("n", "user"+time.Now().String(), fact(1)))
						mu.Lock()
						defer mu.Unlock()
						switch out.Action {
						case memwrite.Ack:
							acked++
						case memwrite.DeadLetter:
							t.Error("a dead letter in a hold")
						default:
							left++
						}
					})
				}
				synctest.Wait()
			}
		})
		time.Sleep(24 * time.Hour)
		mu.Lock()
		if acked != 0 {
			t.Errorf("%d acknowledged without a quota", acked)
		}
		mu.Unlock()
		var probes []time.Duration
		for _, at := range service.times {
			if d := at.Sub(began); d > 0 {
				probes = append(probes, d.Round(time.Second))
			}
		}
		for i, at := range []time.Duration{5, 15, 35, 75, 135, 195} {
			if probes[i] != at*time.Minute {
				t.Errorf("probe %d after %v, want %v", i+1, probes[i], at*time.Minute)
			}
		}
		if len(service.times) > 4+29 {
			t.Errorf("%d requests in a day without a quota", len(service.times))
		}
		if c := w.Counts(); !c.Holding || c.Holds != 1 || c.HeldFor == "" || !c.HeldSince.Equal(began) {
			t.Errorf("%+v", c)
		}
		full.Store(false)
		time.Sleep(time.Hour + time.Minute)
		mu.Lock()
		if acked != 20 {
			t.Errorf("%d of 20 acknowledged an hour after the quota is back", acked)
		}
		mu.Unlock()
		if c := w.Counts(); c.Holding {
			t.Errorf("%+v", c)
		}
		stop()
		source.Wait()
		given.Wait()
	})
}

// A source that cannot be stopped has its deliveries kept, no longer than its
// broker allows.
func TestAHeldDeliveryIsReturnedWithinPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		service := &wire{answer: func(int, *http.Request, []byte) (int, string) { return 401, `{}` }}
		w := service.worker(t, worker.Config{Patience: 2 * time.Minute})
		want(t, w.Handle(t.Context(), note("1", "acme", fact(1))), memwrite.Hold)
		began := time.Now()
		out := w.Handle(t.Context(), note("2", "acme", fact(2)))
		want(t, out, memwrite.Hold)
		if d := time.Since(began); d != 2*time.Minute || out.After != 3*time.Minute || service.requests() != 1 {
			t.Errorf("kept for %v, to come again after %v, %d requests", d, out.After, service.requests())
		}
	})
}

// A probe that says nothing about the hold does not end it.
func TestAProbeThatProvesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		status := 402
		service := &wire{answer: func(int, *http.Request, []byte) (int, string) { return status, `{"code":"X"}` }}
		w := service.worker(t, worker.Config{})
		want(t, w.Handle(t.Context(), note("1", "acme", fact(1))), memwrite.Hold)
		status = 503
		want(t, w.Handle(t.Context(), note("2", "acme", fact(2))), memwrite.RetryAfter)
		want(t, w.Handle(t.Context(), note("3", "acme", "")), memwrite.DeadLetter) // nothing is sent for it
		if !w.Counts().Holding {
			t.Error("a 503 ended the hold")
		}
		status = 422
		want(t, w.Handle(t.Context(), note("4", "acme", fact(4))), memwrite.DeadLetter)
		if w.Counts().Holding {
			t.Error("the service judges requests again and the hold goes on")
		}
	})
}

func TestCloseGivesBackWhatIsNotFinished(t *testing.T) {
	t.Parallel()
	for name, grace := range map[string]time.Duration{"in time": time.Minute, "too slow": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				service := &wire{answer: func(_ int, r *http.Request, _ []byte) (int, string) {
					select {
					case <-time.After(20 * time.Second):
					case <-r.Context().Done():
					}
					return 201, stored
				}}
				w := service.worker(t, worker.Config{Concurrency: 1})
				outs := make([]worker.Outcome, 3)
				var all sync.WaitGroup
				for i := range outs {
					all.Go(func() { outs[i] = w.Handle(t.Context(), note(string(rune('a'+i)), "u"+string(rune('a'+i)), fact(i))) })
					synctest.Wait()
				}
				ctx, cancel := context.WithTimeout(t.Context(), grace)
				defer cancel()
				began := time.Now()
				err := w.Close(ctx)
				all.Wait()
				if wantErr := grace < 20*time.Second; (err != nil) != wantErr {
					t.Errorf("Close: %v after %v", err, time.Since(began))
				}
				first := memwrite.Ack
				if err != nil {
					first = memwrite.GiveBack
				}
				want(t, outs[0], first)
				want(t, outs[1], memwrite.GiveBack)
				want(t, outs[2], memwrite.GiveBack)
				want(t, w.Handle(t.Context(), note("z", "z", fact(9))), memwrite.GiveBack)
				if _, err := w.Demand(t.Context()); err != worker.ErrClosed {
					t.Errorf("Demand after Close: %v", err)
				}
				if n := service.requests(); n != 1 {
					t.Errorf("%d requests", n)
				}
			})
		})
	}
}
