package webhook

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
)

// Each attempt is told once, with its number and its end.
func TestEachAttemptIsTold(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answers []int // 0: none
		last    State
	}{
		"delivered":              {[]int{204}, Told},
		"delivered in the end":   {[]int{500, 0, 302, 200}, Told},
		"given up":               {[]int{500, 503, 404, 0, 500}, GivenUp},
		"given up without words": {[]int{0, 0, 0, 0, 0}, GivenUp},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := stored(t, 1)
				var mu sync.Mutex
				var got []Attempt
				n := 0
				s := New(Config{
					Store: func() protocol.Store { return store }, Scheduler: sched.Real(),
					OnAttempt: func(a Attempt) { mu.Lock(); got = append(got, a); mu.Unlock() },
					HTTP: &http.Client{Transport: subscriber(func(*http.Request) (int, error) {
						n++
						if status := tc.answers[n-1]; status != 0 {
							return status, nil
						}
						return 0, errors.New("nobody at http://hook.test/path-secret?token=query-secret")
					})},
				})
				s.Start()
				s.Set("w", Target{URL: "http://hook.test/path-secret?token=query-secret", Secret: "s"})
				_ = sched.Sleep(t.Context(), sched.Real(), 2*time.Hour)
				s.Close()
				if len(got) != len(tc.answers) {
					t.Fatalf("%d attempts were told, want %d", len(got), len(tc.answers))
				}
				for i, a := range got {
					state := Waiting
					if i == len(got)-1 {
						state = tc.last
					}
					if a.Attempts != i+1 || a.Most != 5 || a.Status != tc.answers[i] || a.State != state || a.Host != "hook.test" || a.EventID == "" || (a.Err != nil) != (tc.answers[i] == 0) {
						t.Errorf("attempt %d: %+v", i+1, a)
					}
					if a.Err != nil && strings.Contains(a.Err.Error(), "secret") {
						t.Errorf("it quotes the URL: %v", a.Err)
					}
				}
			})
		})
	}
}

// What is said of a real connection that gives no answer holds neither the URL
// nor what the other side wrote.
func TestTheCauseOfNoAnswer(t *testing.T) {
	t.Parallel()
	refused, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + refused.Addr().String()
	refused.Close()
	noise := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		io.WriteString(c, "a-secret of the other side\r\n\r\n")
		c.Close()
	}))
	t.Cleanup(noise.Close)
	stuck := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	t.Cleanup(stuck.Close)
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	for name, tc := range map[string]struct{ url, says string }{
		"refused":        {nobody, "connection refused"},
		"no HTTP":        {noise.URL, errAnswer.Error()},
		"too slow":       {stuck.URL, errTime.Error()},
		"no certificate": {secure.URL, "certificate"},
		"no URL":         {"http://user:a-secret@hook.test:port", errURL.Error()},
		"another scheme": {"ftp://hook.test", errAnswer.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := New(Config{Store: func() protocol.Store { return nil }, Scheduler: sched.Real(), Timeout: 100 * time.Millisecond})
			if name != "too slow" {
				s.cfg.Timeout = 20 * time.Second
			}
			status, err := s.post(Target{URL: tc.url + "/path-secret?token=query-secret", Secret: "signing-secret"}, &delivery{body: []byte("{}")})
			if status != 0 || err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "secret") {
				t.Errorf("status %d, error %v", status, err)
			}
		})
	}
}
