package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/memwrite/memwrite-go/internal/sched"
)

// maxAnswer bounds what is read of an answer.
const maxAnswer = 8 << 20

// answer is one HTTP exchange. err is set when no whole answer came.
type answer struct {
	status int
	header http.Header
	body   []byte
	err    error
	fields map[string]any // of a JSON object, else nil
}

func (a answer) String() string {
	if a.err != nil {
		return "no answer"
	}
	body := string(bytes.TrimSpace(a.body))
	if len(body) > 200 {
		body = body[:200] + "..."
	}
	return fmt.Sprintf("%d %s", a.status, body)
}

func (a answer) ok() bool { return a.err == nil && a.status >= 200 && a.status < 300 }

// text is a string field of the answer, "" when it is none.
func (a answer) text(field string) string {
	s, _ := a.fields[field].(string)
	return s
}

// list is an array field of the answer.
func (a answer) list(field string) []any {
	l, _ := a.fields[field].([]any)
	return l
}

// code is the error code of either wire, in whatever shape it came.
func (a answer) code() string {
	if code := a.text("code"); code != "" {
		return code
	}
	for _, field := range []string{"error", "detail"} {
		switch v := a.fields[field].(type) {
		case string:
			if field == "error" {
				return v
			}
		case map[string]any:
			for _, name := range []string{"code", "error"} {
				if s, ok := v[name].(string); ok {
					return s
				}
			}
		}
	}
	return ""
}

// request is one call before it is made.
type request struct {
	method, path string
	body         string // JSON; "" is no body
	header       map[string]string
	poll         bool // a look at an event that is waited for
	once         bool // a refusal by a rate limit is an answer here
}

// caller makes calls to one service with one key, and sees all its answers.
type caller struct {
	base   string
	header map[string]string // authentication
	secret string
	http   *http.Client
	pace   time.Duration
	watch  func(request, answer)
	mu     sync.Mutex
	nextAt time.Time
}

// do makes a call. A 429 of a rate window is waited out, as the protocol asks
// of every client, so that a slow plan does not fail a promise.
func (c *caller) do(ctx context.Context, r request) answer {
	for range 6 {
		a := c.try(ctx, r)
		if a.status != http.StatusTooManyRequests || r.once || !strings.HasPrefix(a.code(), "RATE_LIMIT") {
			return a
		}
		wait := 5 * time.Second
		if n, err := strconv.ParseFloat(a.header.Get("Retry-After"), 64); err == nil && n >= 0 && n <= 90 {
			wait = time.Duration(n * float64(time.Second))
		}
		if sched.Sleep(ctx, sched.Real(), max(wait, 100*time.Millisecond)) != nil {
			return a
		}
	}
	return c.try(ctx, r)
}

func (c *caller) try(ctx context.Context, r request) answer {
	if err := c.wait(ctx); err != nil {
		return answer{err: err}
	}
	var body io.Reader
	if r.body != "" {
		body = strings.NewReader(r.body)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, c.base+r.path, body)
	if err != nil {
		return answer{err: err}
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "memwrite-conformance")
	if r.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for k, v := range c.header {
		req.Header.Set(k, v)
	}
	for k, v := range r.header {
		if v == "" {
			req.Header.Del(k)
		} else {
			req.Header.Set(k, v)
		}
	}
	// A call is made once: the transport must not send it a second time.
	req.GetBody = nil
	resp, err := c.http.Do(req)
	if err != nil {
		a := answer{err: err}
		c.watch(r, a)
		return a
	}
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode, header: resp.Header}
	a.body, a.err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	d := json.NewDecoder(bytes.NewReader(a.body))
	d.UseNumber()
	_ = d.Decode(&a.fields)
	c.watch(r, a)
	return a
}

// wait keeps the pace of this service.
func (c *caller) wait(ctx context.Context) error {
	if c.pace <= 0 {
		return ctx.Err()
	}
	c.mu.Lock()
	now := time.Now()
	if c.nextAt.Before(now) {
		c.nextAt = now
	}
	d := c.nextAt.Sub(now)
	c.nextAt = c.nextAt.Add(c.pace)
	c.mu.Unlock()
	return sched.Sleep(ctx, sched.Real(), d)
}
