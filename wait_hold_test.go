package memwrite_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
)

// holding is a server that holds a request until the event ends, as long as it
// is asked to, behind a proxy that cuts what takes longer than cut (0: none).
type holding struct {
	ends time.Time
	cut  time.Duration

	mu     sync.Mutex
	prefer map[string]int // what was asked for
	reads  int
}

func (h *holding) answer(r *http.Request) (int, http.Header, string) {
	prefer := r.Header.Get("Prefer")
	h.mu.Lock()
	if h.prefer == nil {
		h.prefer = map[string]int{}
	}
	h.prefer[prefer]++
	h.reads++
	h.mu.Unlock()
	id := strings.TrimPrefix(r.URL.Path, "/v1/events/")
	var seconds int
	fmt.Sscanf(prefer, "wait=%d", &seconds)
	hold := min(time.Duration(seconds)*time.Second, max(time.Until(h.ends), 0))
	header := http.Header{}
	if h.cut > 0 && hold > h.cut {
		sleepWith(r.Context(), h.cut)
		return 504, header, "<html>Gateway Timeout</html>"
	}
	sleepWith(r.Context(), hold)
	if prefer != "" {
		header.Set("Preference-Applied", prefer)
	}
	status := memwrite.Running
	if !time.Now().Before(h.ends) {
		status = memwrite.Succeeded
	}
	if id == "/v1/events" {
		return 200, header, `{"results":[],"next_cursor":null}`
	}
	return 200, header, eventBody(id, status)
}

func sleepWith(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// A held request ends before its try does, whoever bounds the try: the policy,
// the http.Client it was given, or that client's transport.
func TestAHeldRequestIsShorterThanTheTry(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		policy memwrite.RetryPolicy
		client time.Duration
		want   string
	}{
		"the policy's":              {memwrite.RetryPolicy{TryTimeout: 8 * time.Second}, 0, "wait=6"},
		"the client's":              {memwrite.RetryPolicy{}, 10 * time.Second, "wait=8"},
		"the client's, the shorter": {memwrite.RetryPolicy{TryTimeout: 20 * time.Second}, 5 * time.Second, "wait=3"},
		"too short for any":         {memwrite.RetryPolicy{}, 2 * time.Second, ""},
		"nobody's":                  {memwrite.RetryPolicy{}, 0, "wait=25"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := &holding{ends: time.Now().Add(3 * time.Minute)}
				var failed int
				c := bubbleClient(t, nil, memwrite.WithRetryPolicy(tc.policy),
					memwrite.WithHTTPClient(&http.Client{Transport: inBubble(srv.answer), Timeout: tc.client}),
					memwrite.WithObserver(memwrite.ObserverFunc(func(o memwrite.Observation) {
						if o.Kind == memwrite.ObserveTryDone && o.Status != 200 {
							failed++
						}
					})))
				if _, err := c.WaitForEvent(t.Context(), "task_1"); err != nil {
					t.Fatal(err)
				}
				if failed > 0 || srv.prefer[tc.want] == 0 || len(srv.prefer) != 1 {
					t.Errorf("%d reads failed; asked for %v, want %q", failed, srv.prefer, tc.want)
				}
			})
		})
	}
}

// The headers of a held answer come late: a transport that gives up on them
// earlier than the try does bounds the hold too.
func TestAHeldRequestIsShorterThanTheTransportsPatience(t *testing.T) {
	t.Parallel()
	var asked sync.Map
	srv := listen(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		asked.Store(r.Header.Get("Prefer"), true)
		respond(w, 200, eventBody("task_1", memwrite.Succeeded))
	})
	tr := http.DefaultTransport.(*http.Transport).Clone()
	tr.ResponseHeaderTimeout = 7 * time.Second
	t.Cleanup(tr.CloseIdleConnections)
	if _, err := srv.client(t, memwrite.WithHTTPClient(&http.Client{Transport: tr})).WaitForEvent(t.Context(), "task_1"); err != nil {
		t.Fatal(err)
	}
	if _, ok := asked.Load("wait=5"); !ok {
		asked.Range(func(k, _ any) bool { t.Errorf("asked for %q", k); return true })
	}
}

// A proxy that cuts held requests leaves polls, and costs neither the gate nor
// the budget of the writes beside it.
func TestAHoldThatIsCutBecomesPolls(t *testing.T) {
	t.Parallel()
	for _, waits := range []int{1, 2, 40} {
		t.Run(fmt.Sprint(waits), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				srv := &holding{ends: begin.Add(5 * time.Minute), cut: 10 * time.Second}
				var mu sync.Mutex
				shut, cut := 0, 0
				c := bubbleClient(t, srv.answer, memwrite.WithObserver(memwrite.ObserverFunc(func(o memwrite.Observation) {
					mu.Lock()
					defer mu.Unlock()
					if o.Kind == memwrite.ObserveGateShut {
						shut++
					}
					if o.Kind == memwrite.ObserveTryDone && o.Status == 504 {
						cut++
					}
				})))
				var all sync.WaitGroup
				for i := range waits {
					all.Go(func() {
						if _, err := c.WaitForEvent(t.Context(), fmt.Sprint("task_", i)); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				if late := time.Since(srv.ends); late > 45*time.Second || shut > 0 || cut > waits+5 {
					t.Errorf("ended %v late, gate shut %d times, %d requests cut", late, shut, cut)
				}
			})
		})
	}
}

// The page of events is a convenience: a service whose list is broken still
// answers for each event, and the waits go on by that.
func TestABrokenListLeavesTheReadsByID(t *testing.T) {
	t.Parallel()
	for name, list := range map[string]func(*http.Request) (int, http.Header, string){
		"500":  func(*http.Request) (int, http.Header, string) { return 500, nil, `{"code":"MEMORY_ENGINE_ERROR"}` },
		"page": func(*http.Request) (int, http.Header, string) { return 200, nil, "<html>Sign in</html>" },
		"hang": func(r *http.Request) (int, http.Header, string) { <-r.Context().Done(); return 0, nil, "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const waits = 30
				ends := time.Now().Add(30 * time.Second)
				var mu sync.Mutex
				lists, all := 0, 0
				c := bubbleClient(t, func(r *http.Request) (int, http.Header, string) {
					mu.Lock()
					all++
					if r.URL.Path == "/v1/events" {
						lists++
					}
					mu.Unlock()
					if r.URL.Path == "/v1/events" {
						return list(r)
					}
					status := memwrite.Running
					if time.Now().After(ends) {
						status = memwrite.Succeeded
					}
					return 200, nil, eventBody(strings.TrimPrefix(r.URL.Path, "/v1/events/"), status)
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				var group sync.WaitGroup
				for i := range waits {
					group.Go(func() {
						if _, err := c.WaitForEvent(ctx, fmt.Sprint("task_", i)); err != nil {
							t.Error(err)
						}
					})
				}
				group.Wait()
				if late := time.Since(ends); late > 30*time.Second || lists > 5 {
					t.Errorf("the last of %d waits ended %v late, after %d pages and %d requests", waits, late, lists, all)
				}
			})
		})
	}
}

// A server may ask a poll to come later, but not for longer than the policy
// lets any server ask.
func TestAHintOnAPollIsBoundedInEveryState(t *testing.T) {
	t.Parallel()
	for _, status := range []memwrite.EventStatus{memwrite.Pending, memwrite.Running, memwrite.Retrying, "ZZ_NEW"} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begin, n := time.Now(), 0
				c := bubbleClient(t, func(*http.Request) (int, http.Header, string) {
					if n++; n > 1 {
						return 200, nil, eventBody("task_1", memwrite.Succeeded)
					}
					return 200, http.Header{"Retry-After": {"86400"}}, eventBody("task_1", status)
				})
				if _, err := c.WaitForEvent(t.Context(), "task_1"); err != nil || time.Since(begin) > 2*time.Minute {
					t.Errorf("%v after %v", err, time.Since(begin))
				}
			})
		})
	}
}

// What the last read said counts, also when the context ended while it was on
// its way.
func TestTheEndOfAnEventGoesBeforeTheEndOfTheContext(t *testing.T) {
	t.Parallel()
	for _, status := range []memwrite.EventStatus{memwrite.Succeeded, memwrite.Failed, memwrite.Retrying} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			// The context ends when the answer was read and before it is looked at.
			watch := memwrite.ObserverFunc(func(o memwrite.Observation) {
				if o.Kind == memwrite.ObserveTryDone {
					cancel()
				}
			})
			srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) { respond(w, 200, eventBody("task_1", status)) })
			ev, err := srv.client(t, memwrite.WithObserver(watch)).WaitForEvent(ctx, "task_1")
			var e *memwrite.Error
			switch errors.As(err, &e); status {
			case memwrite.Succeeded:
				if err != nil || ev.Status != status {
					t.Error(ev, err)
				}
			case memwrite.Failed:
				if !errors.Is(err, memwrite.ErrEventFailed) || e.Event == nil {
					t.Error(err)
				}
			default:
				if !errors.Is(err, memwrite.ErrStillPending) || !errors.Is(err, context.Canceled) || e.Receipt.Status != status || e.Event == nil {
					t.Errorf("%v, receipt %+v", err, e.Receipt)
				}
			}
		})
	}
}

// The event of another id is not an answer to the question that was asked.
func TestAWaitBelievesNoOtherEvent(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 1 { // a cache that mixes up its entries
			respond(w, 200, eventBody("task_2", memwrite.Succeeded))
			return
		}
		respond(w, 200, eventBody("task_1", memwrite.Failed))
	})
	if _, err := srv.client(t).WaitForEvent(t.Context(), "task_1"); !errors.Is(err, memwrite.ErrEventFailed) {
		t.Error(err)
	}
}
