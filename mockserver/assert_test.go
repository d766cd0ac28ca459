package mockserver_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/memwrite/memwrite-go/mockserver"
)

// recorder is a TB of another framework: it notes what it is told.
type recorder struct {
	errors, logs []string
	cleanups     []func()
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Logf(format string, args ...any) {
	r.logs = append(r.logs, fmt.Sprintf(format, args...))
}

// end is the end of its test.
func (r *recorder) end() {
	for _, f := range r.cleanups {
		f()
	}
}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}
func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...) }

func TestAssertionsPrintWhatCameNear(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	c.do("POST", "/memory/add", note)
	c.do("POST", "/memory/add", note)
	c.do("GET", "/health", "")
	got := &recorder{}
	srv.Sent(got, mockserver.Match{Route: "POST /memory/add", Key: "note-0002"})
	srv.Sent(got, mockserver.Match{Key: "note-0001", Times: 1})
	srv.NeverSent(got, mockserver.Match{Route: "GET /health"})
	srv.StoredOnce(got, "note-0002")
	srv.ChargedOnce(got, "note-0002")
	if len(got.errors) != 5 {
		t.Fatalf("%d failures: %q", len(got.errors), got.errors)
	}
	for i, want := range []string{"#1 POST /memory/add [note-0001] -> 201", "was sent 2 times, want 1", "GET /health", "stored by 0 tasks, want 1", "0 settled"} {
		if !strings.Contains(got.errors[i], want) {
			t.Errorf("failure %d does not say %q:\n%s", i, want, got.errors[i])
		}
	}
	fine := &recorder{}
	srv.StoredOnce(fine, "note-0001")
	srv.ChargedOnce(fine, "note-0001")
	srv.Sent(fine, mockserver.Match{Key: "note-0001", Times: 2})
	srv.NeverSent(fine, mockserver.Match{Fault: mockserver.Reset})
	if len(fine.errors) != 0 {
		t.Errorf("failures: %q", fine.errors)
	}
}

func TestManyServersShareNothing(t *testing.T) {
	t.Parallel()
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			srv, err := mockserver.Start()
			if err != nil {
				t.Error(err)
				return
			}
			defer srv.Close()
			c := &caller{t: t, srv: srv}
			if got := c.do("POST", "/memory/add", note); got.status != 201 {
				t.Errorf("a first write: %d", got.status)
			}
			if n := len(srv.Records()); n != 1 {
				t.Errorf("%d records", n)
			}
		})
	}
	group.Wait()
}

func TestAScriptStandsInForTheModel(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	srv.SetScript(func(text string) ([]mockserver.Fact, bool) {
		if !strings.Contains(text, "two facts") {
			return nil, false
		}
		return []mockserver.Fact{{Text: "First", Key: "a"}, {Text: "Second", Key: "b"}}, true
	})
	c.do("POST", "/memory/add", `{"text":"This holds two facts."}`)
	c.do("POST", "/memory/add", note)
	var texts []string
	for _, r := range srv.Records() {
		texts = append(texts, r.Text)
	}
	if strings.Join(texts, ", ") != "First, Second, Ships releases every Thursday" {
		t.Errorf("records: %q", texts)
	}
}
