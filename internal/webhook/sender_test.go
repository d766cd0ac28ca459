package webhook

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/extract"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/internal/store/memory"
)

// subscriber answers without a socket, so that hours take no time.
type subscriber func(*http.Request) (int, error)

func (f subscriber) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	status, err := f(r)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Location": {"http://elsewhere.test"}}, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
}

// stored is a store in which so many inferred writes SUCCEEDED, a minute apart.
func stored(t *testing.T, n int) protocol.Store {
	t.Helper()
	store := memory.New(1)
	if err := store.PutWorkspace(t.Context(), protocol.Workspace{ID: "w", AddsPerMonth: -1, Credits: -1}); err != nil {
		t.Fatal(err)
	}
	e := engine.New(engine.Config{Store: store, Scheduler: sched.Real(), Extractor: extract.Rules{}, Comparer: extract.Comparer{}})
	e.Start()
	defer e.Close()
	for i := range n {
		got, err := e.Submit(t.Context(), "w", protocol.Command{Kind: protocol.Infer, Key: string(rune('a' + i)), Scope: protocol.Scope{UserID: "u"}, Text: "My team ships releases every Thursday."})
		if err == nil {
			_, err = e.Await(t.Context(), "w", got.Task.ID, time.Minute, engine.Ended)
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = sched.Sleep(t.Context(), sched.Real(), time.Minute)
	}
	return store
}

func TestTheLiveWaitsBetweenAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := stored(t, 1)
		var at []time.Duration
		begin := time.Now()
		s := New(Config{Store: func() protocol.Store { return store }, Scheduler: sched.Real(), HTTP: &http.Client{Transport: subscriber(func(*http.Request) (int, error) {
			at = append(at, time.Since(begin))
			switch len(at) {
			case 1:
				return 0, errors.New("nobody answers")
			case 2:
				return 302, nil
			}
			return 503, nil
		})}})
		s.Start()
		s.Set("w", Target{URL: "http://hook.test", Secret: "s"})
		_ = sched.Sleep(t.Context(), sched.Real(), 2*time.Hour)
		s.Close()
		d := s.Deliveries()
		if len(at) != 5 || len(d) != 1 || d[0].State != GivenUp || d[0].Status != 503 {
			t.Fatalf("%d attempts, %+v", len(at), d)
		}
		for i, full := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute} {
			if gap := at[i+1] - at[i]; gap < full/2 || gap > full {
				t.Errorf("%s between attempts %d and %d, want %s to %s", gap, i+1, i+2, full/2, full)
			}
		}
	})
}

func TestASubscriberThatStandsStillHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := stored(t, 3)
		var mu sync.Mutex
		seen := map[string]int{}
		s := New(Config{Store: func() protocol.Store { return store }, Scheduler: sched.Real(), HTTP: &http.Client{Transport: subscriber(func(r *http.Request) (int, error) {
			mu.Lock()
			id := r.Header.Get("X-Fishmem-Delivery")
			seen[id]++
			first := len(seen) == 1 && seen[id] == 1
			mu.Unlock()
			if first {
				<-r.Context().Done()
				return 0, context.Cause(r.Context())
			}
			return 200, nil
		})}})
		s.Start()
		s.Set("w", Target{URL: "http://hook.test", Secret: "s"})
		_ = sched.Sleep(t.Context(), sched.Real(), time.Second)
		if told := s.Deliveries(); len(told) != 3 || told[0].State != Told || told[1].State != Told {
			t.Errorf("%+v", told)
		}
		_ = sched.Sleep(t.Context(), sched.Real(), 2*time.Minute) // its timeout of 10 s and its next attempt
		for _, d := range s.Deliveries() {
			if d.State != Told {
				t.Errorf("%+v", d)
			}
		}
		s.Close()
	})
}

// A start goes through the history of a workspace by halves, and begins where it
// is young enough, whatever its length.
func TestAStartFindsWhereToBegin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, n := range []int{0, 1, 2, 7, 20} {
			store := stored(t, n)
			for _, again := range []time.Duration{time.Second, 90 * time.Second, 5*time.Minute + time.Second, time.Hour} {
				s := New(Config{Store: func() protocol.Store { return store }, Scheduler: sched.Real(), Again: again})
				at, err := s.begin(store, "w")
				if err != nil {
					t.Fatal(err)
				}
				since := time.Now().Add(-again)
				all, err := store.Transitions(t.Context(), "w", 0, 1000)
				if err != nil {
					t.Fatal(err)
				}
				for _, tr := range all {
					if tr.At.Before(since) != (tr.Position <= at) {
						t.Fatalf("%d writes, %s: begins after %d, which is wrong for %d", n, again, at, tr.Position)
					}
				}
				s.Close()
			}
		}
	})
}
