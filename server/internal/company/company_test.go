package company_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/server/internal/company"
)

// Those who were in the last group are waited for as long as they come, and for
// a while not at all when they did not.
func TestOnlyCompanyThatComesIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		c := company.New(sched.Real(), 4)
		mu.Lock()
		defer mu.Unlock()
		began := c.Now()
		time.Sleep(2 * time.Millisecond)
		c.Served(4, began) // a quarter of it is half a millisecond

		// gather leads a group that the others join after a time, or never.
		gather := func(after time.Duration) time.Duration {
			done := make(chan struct{})
			if after > 0 {
				go func() {
					defer close(done)
					for n := range 3 {
						time.Sleep(after / 3)
						mu.Lock()
						c.Came(n + 1)
						mu.Unlock()
					}
				}()
			} else {
				close(done)
			}
			start := time.Now()
			c.Gather(&mu, 1, 0)
			took := time.Since(start)
			mu.Unlock()
			<-done
			mu.Lock()
			return took
		}
		for range 3 {
			if took := gather(300 * time.Microsecond); took != 300*time.Microsecond {
				t.Fatalf("waited %v for those who came", took)
			}
		}
		if took := gather(0); took != 500*time.Microsecond {
			t.Fatalf("waited %v for those who did not come", took)
		}
		for i := range 32 {
			if took := gather(0); took != 0 {
				t.Fatalf("waited %v for group %d after that", took, i)
			}
		}
		if took := gather(300 * time.Microsecond); took != 300*time.Microsecond {
			t.Fatalf("waited %v when they came again", took)
		}
	})
}
