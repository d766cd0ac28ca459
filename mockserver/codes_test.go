package mockserver_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/internal/service"
	"github.com/memwrite/memwrite-go/mockserver"
)

// givenCodes are the rows of docs/errors.md that the server gives itself or by
// a fault: "FishMem 400 INVALID_BODY".
func givenCodes(t *testing.T) map[string]bool {
	t.Helper()
	page, err := os.ReadFile("../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	wire := ""
	for _, line := range strings.Split(string(page), "\n") {
		if name, ok := strings.CutPrefix(line, "## "); ok {
			wire = name
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if _, err := strconv.Atoi(cells[0]); err == nil && cells[len(cells)-1] != "no" {
			out[wire+" "+cells[0]+" "+strings.Trim(cells[1], "`")] = true
		}
	}
	return out
}

// broken is a backend whose store is away.
type broken struct{ service.Backend }

var errAway = errors.New("the store is away")

func (broken) Submit(context.Context, service.Write) (service.Task, bool, error) {
	return service.Task{}, false, errAway
}

// brokenServer serves both wires in front of a store that is away.
func brokenServer(t *testing.T) *mockserver.Server {
	t.Helper()
	keys := service.NewKeys(
		service.NewKey("ms_test_x", "default", service.ServiceMemorySync, service.ScopeMemoryAll),
		service.NewKey("fm_x", "default", service.ServiceFishMem, service.ScopeMemoryRead, service.ScopeMemoryWrite),
	)
	srv := httptest.NewServer(service.New(broken{}, keys, sched.Real(), func(string) bool { return false }, service.Options{}))
	t.Cleanup(srv.Close)
	return &mockserver.Server{URL: srv.URL, MemorySyncKey: "ms_test_x", FishMemKey: "fm_x"}
}

// Each code that the page says the server gives, over a real connection and
// held against the contract. A row without a way to it fails, and so does a way
// without a row.
func TestEveryErrorCodeOfTheServer(t *testing.T) {
	t.Parallel()
	const fish, sync = "FishMem ", "MemorySync "
	write := func(c *caller, header ...string) reply { return c.do("POST", "/v1/memories", infer, header...) }
	search := func(body string) func(c *caller) reply {
		return func(c *caller) reply { return c.do("POST", "/v1/memories/search", body) }
	}
	get := func(path string) func(c *caller) reply { return func(c *caller) reply { return c.do("GET", path, "") } }
	add := func(body string, header ...string) func(c *caller) reply {
		return func(c *caller) reply { return c.do("POST", "/memory/add", body, header...) }
	}
	faulty := func(f mockserver.Fault, call func(*caller) reply) func(c *caller) reply {
		return func(c *caller) reply { c.srv.Arm(f); return call(c) }
	}
	keyed := func(c *caller) reply { return write(c, "Idempotency-Key", "k") }

	provoke := map[string]func(c *caller) reply{
		fish + "400 INVALID_REQUEST": func(c *caller) reply {
			return c.do("POST", "/v1/memories", `{"content":"x"}`, "Idempotency-Key", "k")
		},
		fish + "400 INVALID_BODY":             func(c *caller) reply { return c.do("POST", "/v1/memories", `[]`, "Idempotency-Key", "k") },
		fish + "400 INVALID_QUERY":            search(`{"query":" ","user_id":"a"}`),
		fish + "400 SCOPE_REQUIRED":           search(`{"query":"x"}`),
		fish + "400 INVALID_CURSOR":           get("/v1/events?cursor=!"),
		fish + "400 INVALID_FILTER":           search(`{"query":"x","user_id":"a","filters":{"and":[]}}`),
		fish + "400 IDEMPOTENCY_KEY_REQUIRED": func(c *caller) reply { return write(c) },
		fish + "400 INVALID_IDEMPOTENCY_KEY":  func(c *caller) reply { return write(c, "Idempotency-Key", " ") },
		fish + "401 INVALID_API_KEY":          func(c *caller) reply { return write(c, "Authorization", "Bearer fm_no") },
		fish + "401 API_KEY_EXPIRED":          expiredKey,
		fish + "402 INSUFFICIENT_CREDITS":     faulty(mockserver.Fault{Kind: mockserver.ExhaustCredits}, keyed),
		fish + "403 INSUFFICIENT_PERMISSION":  func(c *caller) reply { return write(c, "Authorization", "Bearer "+c.srv.NewKey("default", "fishmem")) },
		fish + "404 MEMORY_NOT_FOUND":         get("/v1/memories/none"),
		fish + "404 EVENT_NOT_FOUND":          get("/v1/events/none"),
		fish + "404 OPERATION_NOT_FOUND":      get("/v1/operations/none"),
		fish + "404 OPERATION_NOT_RETRYABLE":  func(c *caller) reply { return c.do("POST", "/v1/operations/none/retry", "") },
		fish + "404 NOT_FOUND":                get("/v1/memories/a/b/c"),
		fish + "405 METHOD_NOT_ALLOWED":       func(c *caller) reply { return c.do("PATCH", "/v1/memories", "") },
		fish + "409 IDEMPOTENCY_CONFLICT":     otherCommand,
		fish + "409 IDEMPOTENCY_INCOMPLETE":   faulty(mockserver.Fault{Kind: mockserver.IdempotencyIncomplete}, keyed),
		fish + "413 DELETE_ALL_TOO_LARGE":     tooManyToDelete,
		fish + "429 RATE_LIMITED":             rateLimited("/v1/memories/none", 601),
		fish + "500 MEMORY_ENGINE_ERROR":      func(c *caller) reply { return keyed(&caller{t: c.t, srv: brokenServer(c.t), router: c.router}) },
		sync + "400 MISSING_END_USER_ID":      add(note, "X-End-User-ID", ""),
		sync + "400 INVALID_TENANT_ID_FORMAT": add(note, "X-Tenant-ID", "a_b"),
		sync + "400 INVALID_PROJECT_ID":       add(note, "X-Project-ID", "prj_1"),
		sync + "401 API key missing":          add(note, "X-API-Key", ""),
		sync + "401 Invalid API key":          add(note, "X-API-Key", "ms_no"),
		sync + "404 Memory not found":         get("/memory/1"),
		sync + "404 Not Found":                get("/memory/a/b"),
		sync + "405 Method Not Allowed":       func(c *caller) reply { return c.do("PUT", "/memory/add", "") },
		sync + "413 metadata is too large":    add(`{"text":"I like tea a lot","metadata":{"a":"` + strings.Repeat("x", 64_000) + `"}}`),
		sync + "422 VALIDATION_ERROR":         add(`{}`),
		sync + "429 RATE_LIMIT_EXCEEDED":      rateLimited("/memory/1", 3),
		sync + "500 EXTRACTION_FAILED":        faulty(mockserver.Fault{Kind: mockserver.ProviderInvalid}, add(note)),
		sync + "500 INTERNAL_ERROR":           func(c *caller) reply { return add(note)(&caller{t: c.t, srv: brokenServer(c.t), router: c.router}) },
		sync + "403 API key revoked":          revokedKey,
		sync + "403 Insufficient scope. Missing: memory:add": func(c *caller) reply {
			return add(note, "X-API-Key", c.srv.NewKey("default", "memorysync", "memory:read"))(c)
		},
		sync + "403 Tenant does not belong to this key":  add(note, "X-Tenant-ID", "other"),
		sync + "403 Project does not belong to this key": add(note, "X-Project-ID", "proj_0123456789abcdef"),
		sync + "429 limit_exceeded": func(c *caller) reply {
			return add(note)(newCaller(c.t, mockserver.Run(c.t, mockserver.Adds(0, true))))
		},
		fish + "409 USAGE_RESERVATION_IN_PROGRESS": faulty(mockserver.Fault{Kind: mockserver.ReservationInProgress}, keyed),
		sync + "503 the extraction is still running; send the same request again": func(c *caller) reply {
			srv := mockserver.Run(c.t, mockserver.InlineWait(time.Millisecond), mockserver.RealTimes())
			srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner})
			return add(note)(newCaller(c.t, srv))
		},
	}
	given := givenCodes(t)
	for name := range given {
		if provoke[name] == nil {
			t.Errorf("no test brings %q about", name)
		}
	}
	for name, call := range provoke {
		if !given[name] {
			t.Errorf("docs/errors.md does not say that the server gives %q", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCaller(t, mockserver.Run(t))
			_, rest, _ := strings.Cut(name, " ")
			status, code, _ := strings.Cut(rest, " ")
			got := call(c)
			want, _ := strconv.Atoi(status)
			c.want(got, want, code)
			if id, ok := got.fields()["request_id"]; ok && id != got.header.Get("X-Request-ID") {
				t.Errorf("request id %v in the body, %q in the header", id, got.header.Get("X-Request-ID"))
			}
		})
	}
}

func expiredKey(c *caller) reply {
	key := c.srv.NewKey("default", "fishmem", "memory:read")
	c.srv.ExpireKey(key, "default", "fishmem", c.srv.Now(), "memory:read")
	return c.do("GET", "/v1/memories/none", "", "Authorization", "Bearer "+key)
}

func revokedKey(c *caller) reply {
	key := c.srv.NewKey("default", "memorysync", "memory:*")
	c.srv.RevokeKey(key, "default", "memorysync")
	return c.do("GET", "/memory/1", "", "X-API-Key", key)
}

func otherCommand(c *caller) reply {
	c.want(c.do("POST", "/v1/memories", infer, "Idempotency-Key", "k"), 202, "")
	return c.do("POST", "/v1/memories", strings.Replace(infer, "tea", "coffee", 1), "Idempotency-Key", "k")
}

// tooManyToDelete fills a scope past the bound, 500 records a call.
func tooManyToDelete(c *caller) reply {
	body := `{"user_id":"sam","infer":false,"messages":[` + strings.TrimSuffix(strings.Repeat(`{"role":"user","content":"x"},`, 500), ",") + `]}`
	for range 50 {
		c.want(c.do("POST", "/v1/memories", body), 200, "")
	}
	c.want(c.do("POST", "/v1/memories", `{"user_id":"sam","infer":false,"content":"one too many"}`), 200, "")
	got := c.do("DELETE", "/v1/memories?user_id=sam", "", "Idempotency-Key", "all")
	if left := len(c.srv.Records()); left != 25_001 {
		c.t.Errorf("%d records are left", left)
	}
	for _, r := range c.srv.Records()[:1] {
		if r.Deleted {
			c.t.Error("a refused deletion deleted")
		}
	}
	return got
}

// rateLimited asks until the window is full; the answer must say when to come
// back.
func rateLimited(path string, calls int) func(c *caller) reply {
	return func(c *caller) reply {
		srv := mockserver.Run(c.t, mockserver.RateLimits())
		srv.Freeze()
		c = newCaller(c.t, srv)
		var got reply
		for range calls {
			got = c.do("GET", path, "")
		}
		if got.header.Get("Retry-After") == "" {
			c.t.Error("no Retry-After")
		}
		return got
	}
}

// Whatever the service does not know keeps its inside to itself.
func TestAnInternalErrorSaysNothingOfWhy(t *testing.T) {
	t.Parallel()
	c := newCaller(t, mockserver.Run(t))
	c.srv = brokenServer(t)
	for path, body := range map[string]string{"/v1/memories": infer, "/memory/add": note} {
		got := c.want(c.do("POST", path, body, "Idempotency-Key", "k"), 500, "")
		if strings.Contains(string(got.body), errAway.Error()) {
			t.Errorf("%s: %s", path, got.body)
		}
	}
}
