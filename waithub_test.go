package memwrite

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memwrite/memwrite-go/internal/sched"
)

func TestAPollThatIsNotMadeCostsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &waitHub{client: &Client{sched: sched.Real()}}
		for range pollBurst { // the burst is free
			if err := h.pay(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		gone, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		for range 100 {
			if err := h.pay(gone); err == nil {
				t.Fatal("a poll was paid for after its context's end")
			}
		}
		begin := time.Now()
		if err := h.pay(t.Context()); err != nil || time.Since(begin) > pollEvery {
			t.Errorf("the next poll waited %v (%v)", time.Since(begin), err)
		}
	})
}
