package memwrite_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
)

// inVirtualTime runs one Add against a server of one answer and tells how long
// it took and how often it was tried.
func inVirtualTime(t *testing.T, p memwrite.RetryPolicy, ctxFor time.Duration, f inBubble) (time.Duration, error) {
	t.Helper()
	ctx := t.Context()
	if ctxFor > 0 {
		c, cancel := context.WithTimeout(ctx, ctxFor)
		defer cancel()
		ctx = c
	}
	begin := time.Now()
	_, err := bubbleClient(t, f, memwrite.WithRetryPolicy(p)).Add(ctx, theNote())
	return time.Since(begin), err
}

func TestS01_RetryAfterAboveTheLimitEndsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, err := inVirtualTime(t, memwrite.RetryPolicy{MaxServerWait: 2 * time.Second}, 0, func(*http.Request) (int, http.Header, string) {
			return 429, http.Header{"Retry-After": {"3600"}}, ""
		})
		var e *memwrite.Error
		if !errors.As(err, &e) || d > 2*time.Second || e.RetryAfter < time.Hour || !errors.Is(err, memwrite.ErrRateLimited) {
			t.Error(d, err)
		}
	})
}

func TestS03_DateInTheYear9999(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, err := inVirtualTime(t, memwrite.RetryPolicy{}, 0, func(*http.Request) (int, http.Header, string) {
			return 503, http.Header{"Retry-After": {"Fri, 31 Dec 9999 23:59:59 GMT"}}, ""
		})
		var e *memwrite.Error
		if !errors.As(err, &e) || d > 90*time.Second || e.RetryAfter > 24*time.Hour {
			t.Error(d, err)
		}
	})
}

func TestS04_NonsenseInRetryAfterIsIgnored(t *testing.T) {
	t.Parallel()
	for _, v := range []string{"9223372037", "18446744074", "1e309", "NaN", "-0", "-5", "1, 2", "99999999999999999999", ""} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			d, err := inVirtualTime(t, memwrite.RetryPolicy{}, 0, func(*http.Request) (int, http.Header, string) {
				n++
				return 503, http.Header{"Retry-After": {v}}, ""
			})
			if err == nil || d < 4*20*time.Millisecond || d > 4*90*time.Second || n != 5 {
				t.Errorf("%q: %v, %d tries, %v", v, d, n, err)
			}
		})
	}
}

func TestS05_FirstWaitsSpreadOverTheWholeRange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var buckets [10]int
		for range 1000 {
			n := 0
			d, err := inVirtualTime(t, memwrite.RetryPolicy{}, 0, func(*http.Request) (int, http.Header, string) {
				if n++; n == 1 {
					return 503, nil, ""
				}
				return 201, nil, storedBody
			})
			if err != nil || d > time.Second {
				t.Fatal(d, err)
			}
			buckets[min(int(d/(100*time.Millisecond)), 9)]++
		}
		for i, n := range buckets {
			if n < 50 || n > 160 { // 100 expected, 9.5 the deviation
				t.Errorf("tenth %d of the range: %d of 1000", i, n)
			}
		}
	})
}

func TestS06_AWaitBeyondTheDeadlineIsNotBegun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, err := inVirtualTime(t, memwrite.RetryPolicy{}, 10*time.Second, func(*http.Request) (int, http.Header, string) {
			return 503, http.Header{"Retry-After": {"60"}}, `{"detail":"draining"}`
		})
		if d != 0 || !errors.Is(err, memwrite.ErrServer) || !errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), "would exceed the deadline") || !strings.Contains(err.Error(), "draining") {
			t.Error(d, err)
		}
	})
}

func TestS07_TheServersWaitIsALowerBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := 0
		d, err := inVirtualTime(t, memwrite.RetryPolicy{}, 0, func(*http.Request) (int, http.Header, string) {
			if n++; n == 1 {
				return 429, http.Header{"Retry-After": {"30"}}, ""
			}
			return 201, nil, storedBody
		})
		if err != nil || d < 30*time.Second || d > 90*time.Second {
			t.Error(d, err)
		}
	})
}

// There is no wait under 20 ms to forbid by a unit, so the floor is held.
func TestS09_AFailingCallTakesTheSumOfItsFloors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, err := inVirtualTime(t, memwrite.RetryPolicy{Base: time.Nanosecond}, 0, func(*http.Request) (int, http.Header, string) {
			return 503, nil, ""
		})
		if err == nil || d < 4*20*time.Millisecond {
			t.Error(d, err)
		}
	})
}

func TestS11_RateLimitsWaitLongerThanFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mean := func(status int) (sum time.Duration) {
			for range 200 {
				n := 0
				d, _ := inVirtualTime(t, memwrite.RetryPolicy{}, 0, func(*http.Request) (int, http.Header, string) {
					if n++; n == 1 {
						return status, nil, ""
					}
					return 201, nil, storedBody
				})
				sum += d / 200
			}
			return sum
		}
		if limited, failed := mean(429), mean(503); limited < 2*failed {
			t.Errorf("429 waits %v, 503 waits %v", limited, failed)
		}
	})
}
