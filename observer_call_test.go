package memwrite_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"

	memwrite "github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/mockserver"
)

type callKey struct{}

// follower is a CallObserver that notes what it is told.
type follower struct {
	mu    sync.Mutex
	calls []memwrite.Call
	ends  []error
	seen  []memwrite.Observation
}

func (f *follower) Observe(o memwrite.Observation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, o)
}

func (f *follower) ObserveCall(ctx context.Context, c memwrite.Call, h http.Header) (context.Context, func(error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, c)
	n := len(f.calls)
	h.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	h.Set("Idempotency-Key", "the observer's")
	return context.WithValue(ctx, callKey{}, n), func(err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.ends = append(f.ends, err)
	}
}

func TestACallObserverFollowsACallThroughItsTries(t *testing.T) {
	s := mockserver.Run(t)
	f := &follower{}
	c := s.Client(t, memwrite.WithObserver(f))
	s.Arm(mockserver.Fault{Kind: mockserver.DropResponse})
	req := memwrite.InferRequest{Key: memwrite.NewRef("note", "1"), Scope: memwrite.Scope{UserID: "sam"}, Content: "My team ships releases every Thursday."}
	if _, err := c.AddAsync(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	req.Content = "Another text under the same key."
	if _, err := c.AddAsync(t.Context(), req); !errors.Is(err, memwrite.ErrConflict) {
		t.Fatal(err)
	}
	if len(f.calls) != 2 || f.calls[0] != (memwrite.Call{Service: "fishmem", Op: "AddAsync", Method: "POST"}) {
		t.Errorf("told of %+v", f.calls)
	}
	if len(f.ends) != 2 || f.ends[0] != nil || !errors.Is(f.ends[1], memwrite.ErrConflict) {
		t.Errorf("ended with %v", f.ends)
	}
	tries := map[int]int{}
	for _, o := range f.seen {
		if o.Kind == memwrite.ObserveTryStarted {
			n, _ := o.Context.Value(callKey{}).(int)
			tries[n]++
		}
	}
	if tries[1] != 2 || tries[2] != 1 {
		t.Errorf("tries by call: %v", tries)
	}
	for _, r := range s.Journal() {
		if r.Header.Get("Traceparent") == "" || r.Identity.IdempotencyKey != "note-1" {
			t.Errorf("request %d has traceparent %q and key %q", r.Seq, r.Header.Get("Traceparent"), r.Identity.IdempotencyKey)
		}
	}
}
