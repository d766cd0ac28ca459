package memwrite_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/mockserver"
)

// source is an EventSource that a test speaks through.
type source struct {
	mu  sync.Mutex
	say func(string)
}

func (s *source) Listen(f func(string)) func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.say = f
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.say = nil
	}
}

func TestAWaitHearsOfItsEventAndPollsAtAQuarterOfThePace(t *testing.T) {
	t.Parallel()
	polls := func(tell bool) (n int, took time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			ends := begin.Add(time.Minute)
			src := &source{}
			opts := []memwrite.Option{}
			if tell {
				opts = append(opts, memwrite.WithEventSource(src))
			}
			c := bubbleClient(t, func(*http.Request) (int, http.Header, string) {
				n++
				if time.Now().Before(ends) {
					return 200, nil, eventBody("task_1", memwrite.Pending)
				}
				return 200, nil, eventBody("task_1", memwrite.Succeeded)
			}, opts...)
			if tell {
				go func() {
					time.Sleep(time.Minute)
					src.say("task_of_another")
					src.say("task_1")
				}()
			}
			if _, err := c.WaitForEvent(t.Context(), "task_1"); err != nil {
				t.Error(err)
			}
			took = time.Since(begin)
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if tell && src.say != nil {
				t.Error("a closed client listens")
			}
			synctest.Wait()
		})
		return n, took
	}
	alone, _ := polls(false)
	told, took := polls(true)
	if took != time.Minute {
		t.Errorf("told of its end after a minute, the wait took %s", took)
	}
	if told*2 > alone {
		t.Errorf("%d polls with a source, %d without", told, alone)
	}
}

// The trap of the service: an event that FAILED is told by nobody. The wait
// finds out by itself.
func TestNoWebhookTellsOfAWriteThatFailedAndTheWaitStillEnds(t *testing.T) {
	t.Parallel()
	var heard atomic.Int32
	url, h := hook(t, memwrite.WebhookOptions{Handle: func(context.Context, memwrite.WebhookEvent) error { heard.Add(1); return nil }})
	srv := mockserver.Run(t, mockserver.Webhook(url, hookSecret))
	client := srv.Client(t, memwrite.WithEventSource(h))
	srv.Arm(mockserver.Fault{Kind: mockserver.ProviderInvalid, Key: "note-1"})
	if _, err := client.AddAndWait(t.Context(), noted("note-1")); !errors.Is(err, memwrite.ErrEventFailed) {
		t.Fatal(err)
	}
	if _, err := client.AddAndWait(t.Context(), noted("note-2")); err != nil {
		t.Fatal(err)
	}
	for len(srv.Deliveries()) == 0 || srv.Deliveries()[0].State != "told" {
		<-time.After(time.Millisecond)
	}
	if d := srv.Deliveries(); len(d) != 1 || heard.Load() != 1 {
		t.Errorf("%d messages, %d heard, of one write that FAILED and one that SUCCEEDED", len(d), heard.Load())
	}
}
