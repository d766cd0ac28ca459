package memwrite_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/mockserver"
)

func facts(n int) iter.Seq[memwrite.AddRequest] {
	return func(yield func(memwrite.AddRequest) bool) {
		for i := range n {
			if !yield(memwrite.AddRequest{
				Text: fmt.Sprintf("Customer %d asked to be called on day %d.", i, i%28+1), EndUserID: fmt.Sprint("customer-", i), Ref: memwrite.NewRef("note", fmt.Sprint(i)),
			}) {
				return
			}
		}
	}
}

func ExampleClient_AddAll() {
	srv, _ := mockserver.Start()
	defer srv.Close()
	client, _ := memwrite.New(memwrite.WithMemorySync(srv.URL, srv.MemorySyncKey))
	notes := []memwrite.AddRequest{
		{Text: "My team ships releases every Thursday.", EndUserID: "acme", Ref: memwrite.NewRef("note", "0001")},
		{Text: "We prefer invoices as PDF attachments.", EndUserID: "acme", Ref: memwrite.NewRef("note", "0002")},
		{Text: "", EndUserID: "acme", Ref: memwrite.NewRef("note", "0003")},
	}
	stored, failed := 0, 0
	for added, err := range client.AddAll(context.Background(), slices.Values(notes), memwrite.AddAllOptions{}) {
		switch {
		case added.Index < 0:
			fmt.Println("stopped:", err)
		case err != nil:
			failed++
			fmt.Println(added.Request.Ref, "failed:", errors.Is(err, memwrite.ErrInvalidInput))
		default:
			stored++
		}
	}
	fmt.Println(stored, "stored,", failed, "failed")
	// Output:
	// note-0003 failed: true
	// 2 stored, 1 failed
}

// trip is a service in a function, and how many calls were inside at most.
type trip struct {
	answer       func(n int) (int, string)
	n            atomic.Int64
	inside, most atomic.Int64
}

func (s *trip) RoundTrip(r *http.Request) (*http.Response, error) {
	s.most.Store(max(s.most.Load(), s.inside.Add(1)))
	defer s.inside.Add(-1)
	status, body := s.answer(int(s.n.Add(1)))
	select {
	case <-time.After(time.Second):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func (s *trip) client(t *testing.T) *memwrite.Client {
	t.Helper()
	c, err := memwrite.New(memwrite.WithMemorySync("http://memorysync.test", msKey), memwrite.WithHTTPClient(&http.Client{Transport: s}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAddAllYieldsEachRequestOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		svc := &trip{answer: func(n int) (int, string) {
			if n%10 == 0 {
				return 422, `{"error":{"code":"VALIDATION_ERROR"}}`
			}
			return 201, storedBody
		}}
		began := time.Now()
		seen := map[int]int{}
		failed := 0
		for added, err := range svc.client(t).AddAll(t.Context(), facts(100), memwrite.AddAllOptions{Concurrency: 5}) {
			seen[added.Index]++
			if err != nil {
				failed++
			} else if added.Result.Ref != added.Request.Ref || added.Request.Ref.String() != fmt.Sprintf("note-%d", added.Index) {
				t.Errorf("%+v", added)
			}
		}
		if len(seen) != 100 || failed != 10 || svc.most.Load() != 5 || time.Since(began) != 20*time.Second {
			t.Errorf("%d requests, %d failed, %d at a time, %v", len(seen), failed, svc.most.Load(), time.Since(began))
		}
		for i, n := range seen {
			if n != 1 || i < 0 {
				t.Errorf("request %d was yielded %d times", i, n)
			}
		}
	})
}

func TestAddAllStopsWhereEveryFurtherRequestWouldFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		svc := &trip{answer: func(n int) (int, string) {
			if n > 20 {
				return 200, `{"status":"ok"}`
			}
			return 201, storedBody
		}}
		ok, quota, last := 0, 0, 0
		for added, err := range svc.client(t).AddAll(t.Context(), facts(1_000_000), memwrite.AddAllOptions{Concurrency: 4}) {
			switch {
			case added.Index == -1:
				last++
				if !errors.Is(err, memwrite.ErrQuotaExceeded) {
					t.Error(err)
				}
			case errors.Is(err, memwrite.ErrQuotaExceeded):
				quota++
			case err == nil:
				ok++
			}
		}
		if ok != 20 || quota > 8 || last != 1 {
			t.Errorf("%d stored, %d refused, %d last entries", ok, quota, last)
		}
	})
}

func TestAddAllEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		svc := &trip{answer: func(int) (int, string) { return 201, storedBody }}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+time.Millisecond)
		defer cancel()
		ok := 0
		var last error
		for added, err := range svc.client(t).AddAll(ctx, facts(1_000_000), memwrite.AddAllOptions{Concurrency: 3}) {
			if err == nil {
				ok++
			}
			if added.Index == -1 {
				last = err
			}
		}
		if ok != 30 || !errors.Is(last, context.DeadlineExceeded) {
			t.Errorf("%d stored, %v", ok, last)
		}
	})
}

// The bubble fails when a goroutine outlives the loop.
func TestAddAllLeavesNothingBehindAfterABreak(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		svc := &trip{answer: func(int) (int, string) { return 201, storedBody }}
		read := 0
		counted := func(yield func(memwrite.AddRequest) bool) {
			for r := range facts(1_000_000) {
				read++
				if !yield(r) {
					return
				}
			}
		}
		for range svc.client(t).AddAll(t.Context(), counted, memwrite.AddAllOptions{Concurrency: 4}) {
			break
		}
		if n := svc.inside.Load(); n != 0 || read > 5 {
			t.Errorf("%d inside, %d read", n, read)
		}
		for _, err := range svc.client(t).AddAll(t.Context(), facts(1), memwrite.AddAllOptions{Concurrency: -1}) {
			if !errors.Is(err, memwrite.ErrInvalidInput) {
				t.Error(err)
			}
		}
	})
}

// Two adds a second: all of them are stored, and none is lost to its tries.
func TestAddAllKeepsTheServersPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := mockserver.Run(t, mockserver.InProcess(), mockserver.RateLimits())
		stored := 0
		for _, err := range srv.Client(t).AddAll(t.Context(), facts(50), memwrite.AddAllOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			stored++
		}
		if n := len(srv.Records()); stored != 50 || n != 50 {
			t.Errorf("%d stored, %d records", stored, n)
		}
	})
}
