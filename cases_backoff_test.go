package memwrite_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"

	memwrite "github.com/memwrite/memwrite-go"
)

// A strategy that has given up says so with a negative wait. Taken for a
// duration it would be no wait at all, and the loop would spin.
func TestS10_ABackOffThatStopsEndsTheCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sent []time.Time
		p := memwrite.RetryPolicy{MaxTries: 100, NewBackOff: func() backoff.BackOff {
			return backoff.WithMaxRetries(&backoff.ZeroBackOff{}, 3)
		}}
		_, err := inVirtualTime(t, p, 0, func(*http.Request) (int, http.Header, string) {
			sent = append(sent, time.Now())
			return 503, nil, ""
		})
		if err == nil || len(sent) != 4 {
			t.Fatalf("%d tries, %v", len(sent), err)
		}
		for i := range sent[1:] {
			if gap := sent[i+1].Sub(sent[i]); gap < 20*time.Millisecond {
				t.Errorf("try %d came %v after the last", i+2, gap)
			}
		}
	})
}
