package memwrite_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
)

// inBubble answers requests without a socket, so that a wait of minutes takes
// no time at all.
type inBubble func(*http.Request) (status int, header http.Header, body string)

func (f inBubble) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	status, h, body := f(r)
	if err := r.Context().Err(); err != nil {
		return nil, context.Cause(r.Context())
	}
	if h == nil {
		h = http.Header{}
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r}, nil
}

func bubbleClient(t *testing.T, f inBubble, opts ...memwrite.Option) *memwrite.Client {
	t.Helper()
	c, err := memwrite.New(append([]memwrite.Option{
		memwrite.WithMemorySync("http://memorysync.test", msKey), memwrite.WithFishMem("http://fishmem.test", fmKey),
		memwrite.WithHTTPClient(&http.Client{Transport: f}),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func eventBody(id string, status memwrite.EventStatus) string {
	return fmt.Sprintf(`{"id":%q,"status":%q,"event_type":"ADD","results":[]}`, id, status)
}

func TestWaitPollsAtASixthOfTheTimeSinceTheLastChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var polls []time.Duration
		c := bubbleClient(t, func(r *http.Request) (int, http.Header, string) {
			polls = append(polls, time.Since(begin))
			s := memwrite.Pending
			if time.Since(begin) >= 40*time.Second {
				s = memwrite.Succeeded
			}
			return 200, nil, eventBody("task_1", s)
		})
		if _, err := c.WaitForEvent(t.Context(), "task_1"); err != nil {
			t.Fatal(err)
		}
		for i := 1; i < len(polls); i++ {
			gap := polls[i] - polls[i-1]
			if gap < 350*time.Millisecond || gap > 5*time.Second {
				t.Errorf("poll %d came after %v", i, gap)
			}
		}
		if end := polls[len(polls)-1]; end > 45*time.Second || len(polls) > 40 {
			t.Errorf("%d polls, the last at %v", len(polls), end)
		}
	})
}

func TestWaitLeavesRetryingAloneForAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		n := 0
		c := bubbleClient(t, func(*http.Request) (int, http.Header, string) {
			n++
			switch since := time.Since(begin); {
			case since < 60*time.Second:
				return 200, nil, eventBody("task_1", memwrite.Retrying)
			default:
				return 200, nil, eventBody("task_1", memwrite.Succeeded)
			}
		})
		if _, err := c.WaitForEvent(t.Context(), "task_1"); err != nil || n != 2 {
			t.Error(n, err)
		}
	})
}

func TestWaitHoldsRequestsWhereTheServerDoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := 0
		var seen []memwrite.EventStatus
		c := bubbleClient(t, func(r *http.Request) (int, http.Header, string) {
			n++
			h := http.Header{"Preference-Applied": {"wait=25"}}
			if r.Header.Get("Prefer") != "wait=25" {
				t.Error(r.Header)
			}
			time.Sleep(10 * time.Second) // the bubble's clock: a held request
			return 200, h, eventBody("task_1", []memwrite.EventStatus{memwrite.Running, memwrite.Succeeded}[n-1])
		})
		begin := time.Now()
		_, err := c.WaitForEvent(t.Context(), "task_1", memwrite.OnChange(func(e memwrite.Event) { seen = append(seen, e.Status) }))
		if err != nil || n != 2 || time.Since(begin) != 20*time.Second {
			t.Error(n, time.Since(begin), err)
		}
		if fmt.Sprint(seen) != "[RUNNING SUCCEEDED]" {
			t.Error(seen)
		}
	})
}

func TestWaitThatClaimsToHoldAndDoesNotIsPolled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := 0
		c := bubbleClient(t, func(*http.Request) (int, http.Header, string) {
			n++
			return 200, http.Header{"Preference-Applied": {"wait=25"}}, eventBody("task_1", memwrite.Pending)
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := c.WaitForEvent(ctx, "task_1"); !errors.Is(err, memwrite.ErrStillPending) || n > 40 {
			t.Error(n, err)
		}
	})
}

func TestStillPendingCarriesTheReceiptAndResumeGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		c := bubbleClient(t, func(r *http.Request) (int, http.Header, string) {
			if r.Method == http.MethodPost {
				return 202, nil, `{"message":"m","status":"PENDING","event_id":"task_1"}`
			}
			if time.Since(begin) > time.Minute {
				return 200, nil, eventBody("task_1", memwrite.Succeeded)
			}
			return 200, nil, eventBody("task_1", "ZZ_NEW") // waits on, and is reported
		})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := c.AddAndWait(ctx, theInferred())
		var e *memwrite.Error
		if !errors.As(err, &e) || !errors.Is(err, memwrite.ErrStillPending) || !errors.Is(err, context.DeadlineExceeded) ||
			e.Receipt.EventID != "task_1" || e.Receipt.Key != "note-0101" || e.Receipt.Status != "ZZ_NEW" {
			t.Fatal(err)
		}
		if v := memwrite.VerdictOf(err); v.Action != memwrite.RetryAfter {
			t.Error(v)
		}
		if time.Since(begin) != 3*time.Second {
			t.Error(time.Since(begin))
		}
		if ev, err := c.Resume(t.Context(), *e.Receipt); err != nil || ev.Status != memwrite.Succeeded {
			t.Error(ev, err)
		}
	})
}

func TestAHundredWaitsShareTheirPolls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var mu sync.Mutex
		perMinute := map[int]int{}
		c := bubbleClient(t, func(r *http.Request) (int, http.Header, string) {
			mu.Lock()
			perMinute[int(time.Since(begin)/time.Minute)]++
			mu.Unlock()
			s := memwrite.Running
			if time.Since(begin) > 3*time.Minute {
				s = memwrite.Succeeded
			}
			if r.URL.Path != "/v1/events" {
				return 200, nil, eventBody(strings.TrimPrefix(r.URL.Path, "/v1/events/"), s)
			}
			var all []string
			for i := range 100 {
				all = append(all, eventBody(fmt.Sprintf("task_%d", i), s))
			}
			return 200, nil, `{"results":[` + strings.Join(all, ",") + `],"next_cursor":null}`
		})
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				if _, err := c.WaitForEvent(t.Context(), fmt.Sprintf("task_%d", i)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for m, n := range perMinute {
			if n > 300 {
				t.Errorf("minute %d: %d polls", m, n)
			}
		}
		if d := time.Since(begin); d > 3*time.Minute+10*time.Second {
			t.Errorf("ended after %v", d)
		}
		t.Logf("polls a minute: %v", perMinute)
	})
}

func TestWaitOutlivesFaultsOfThePolls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := 0
		c := bubbleClient(t, func(*http.Request) (int, http.Header, string) {
			if n++; n < 12 {
				return 503, nil, ""
			}
			return 200, nil, eventBody("task_1", memwrite.Succeeded)
		})
		if _, err := c.WaitForEvent(t.Context(), "task_1"); err != nil {
			t.Error(err)
		}
	})
}

func TestWaitGivesAMissingEventAShortGrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		c := bubbleClient(t, func(*http.Request) (int, http.Header, string) {
			return 404, nil, `{"code":"EVENT_NOT_FOUND","message":"m"}`
		})
		_, err := c.WaitForEvent(t.Context(), "task_1")
		if d := time.Since(begin); !errors.Is(err, memwrite.ErrNotFound) || d < 4*time.Second || d > 6*time.Second {
			t.Error(d, err)
		}
	})
}
