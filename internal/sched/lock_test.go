package sched_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/memwrite/memwrite-go/internal/sched"
)

func TestLockIsHeldByOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := sched.Real()
		l := sched.NewLock(s)
		inside, entered := 0, 0
		for range 8 {
			s.Go(func() {
				l.Lock()
				defer l.Unlock()
				if inside++; inside > 1 {
					t.Error("two hold the lock")
				}
				_ = sched.Sleep(t.Context(), s, time.Second)
				inside--
				entered++
			})
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if entered != 8 {
			t.Errorf("%d of 8 got the lock", entered)
		}
	})
}

func TestUnlockOfAFreeLockPanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	l := sched.NewLock(sched.Real())
	l.Unlock()
}
