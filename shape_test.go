package memwrite_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	memwrite "github.com/memwrite/memwrite-go"
)

// operation is a call, the answer it needs, and whether it may be sent twice.
type operation struct {
	name, answer string
	do           func(context.Context, *memwrite.Client) (tries int, err error)
}

const (
	anEvent     = `{"id":"task_1","status":"PENDING"}`
	aReceipt    = `{"event_id":"task_1","status":"PENDING"}`
	anOperation = `{"id":"task_1","status":"pending"}`
)

// everyOperation is one call of each that has an answer of its own.
var everyOperation = []operation{
	{"Add", storedBody, func(ctx context.Context, c *memwrite.Client) (int, error) {
		r, err := c.Add(ctx, theNote())
		return triesOf(r, err, func() int { return r.Tries }), err
	}},
	{"AddTurn", `{"status":"ok","processing_status":"processed","memory_id":"m_1"}`, func(ctx context.Context, c *memwrite.Client) (int, error) {
		r, err := c.AddTurn(ctx, theTurn())
		return triesOf(r, err, func() int { return r.Tries }), err
	}},
	{"AddAsync", aReceipt, func(ctx context.Context, c *memwrite.Client) (int, error) {
		r, err := c.AddAsync(ctx, theInferred())
		return triesOf(r, err, func() int { return r.Tries }), err
	}},
	{"AddVerbatim", `{"results":[]}`, func(ctx context.Context, c *memwrite.Client) (int, error) {
		r, err := c.AddVerbatim(ctx, theInferred())
		return triesOf(r, err, func() int { return r.Tries }), err
	}},
	{"Forget", `{"deleted":1}`, func(ctx context.Context, c *memwrite.Client) (int, error) {
		r, err := c.Forget(ctx, memwrite.ForgetRequest{EndUserID: "acme", MemoryIDs: []int64{1}})
		return triesOf(r, err, func() int { return r.Tries }), err
	}},
	{"Event", anEvent, func(ctx context.Context, c *memwrite.Client) (int, error) {
		_, err := c.Event(ctx, "task_1")
		return 0, err
	}},
	{"Events", `{"results":[]}`, func(ctx context.Context, c *memwrite.Client) (int, error) {
		for _, err := range c.Events(ctx, memwrite.EventFilter{}) {
			return 0, err
		}
		return 0, nil
	}},
	{"Operation", anOperation, func(ctx context.Context, c *memwrite.Client) (int, error) {
		_, err := c.Operation(ctx, "task_1")
		return 0, err
	}},
	{"Redrive", anOperation, func(ctx context.Context, c *memwrite.Client) (int, error) {
		_, err := c.Redrive(ctx, "task_1")
		return 0, err
	}},
	{"Memory", storedBody, func(ctx context.Context, c *memwrite.Client) (int, error) {
		_, err := c.Memory(ctx, "acme", 66438)
		return 0, err
	}},
	{"Record", `{"id":"m1","memory":"x"}`, func(ctx context.Context, c *memwrite.Client) (int, error) {
		_, err := c.Record(ctx, "m1")
		return 0, err
	}},
	{"Memories", `{"results":[]}`, func(ctx context.Context, c *memwrite.Client) (int, error) {
		for _, err := range c.Memories(ctx, memwrite.Scope{UserID: "sam"}) {
			return 0, err
		}
		return 0, nil
	}},
	{"Query", `{"memories":[]}`, func(ctx context.Context, c *memwrite.Client) (int, error) {
		_, err := c.Query(ctx, memwrite.QueryRequest{EndUserID: "acme", Query: "which day"})
		return 0, err
	}},
	{"Search", `{"results":[]}`, func(ctx context.Context, c *memwrite.Client) (int, error) {
		_, err := c.Search(ctx, memwrite.SearchRequest{Scope: memwrite.Scope{UserID: "sam"}, Query: "which day"})
		return 0, err
	}},
	{"Projects", `[]`, func(ctx context.Context, c *memwrite.Client) (int, error) {
		_, err := c.Projects(ctx)
		return 0, err
	}},
	{"Usage", `{"adds":{},"credits":{},"balanced":true}`, func(ctx context.Context, c *memwrite.Client) (int, error) {
		_, err := c.Usage(ctx)
		return 0, err
	}},
}

// triesOf reads the tries of a result, or of an error.
func triesOf[T any](result *T, err error, of func() int) int {
	var e *memwrite.Error
	if errors.As(err, &e) {
		return e.Tries
	}
	if result == nil {
		return 0
	}
	return of()
}

// A 2xx that is JSON and of another shape proves as little as an answer cut
// short, and is tried again under the same identity.
func TestAnAnswerOfAnotherShapeIsTriedAgain(t *testing.T) {
	t.Parallel()
	for _, op := range everyOperation {
		for _, body := range []string{`{"hello":"world"}`, `{}`, `[]`, `[1]`, `null`, `{"id":{},"status":7,"results":{},"memories":3,"adds":[]}`} {
			if op.name == "Projects" && body == `[]` {
				continue // no project is an answer
			}
			t.Run(op.name+" "+body, func(t *testing.T) {
				t.Parallel()
				bothWays(t, func(t *testing.T, opt memwrite.Option) {
					srv := listen(t, func(n int, w http.ResponseWriter, _ *http.Request) {
						if n == 1 {
							respond(w, 200, body)
							return
						}
						respond(w, 200, op.answer)
					})
					tries, err := op.do(t.Context(), srv.client(t, opt))
					reqs := srv.requests()
					if err != nil || len(reqs) != 2 || tries != 0 && tries != 2 {
						t.Fatalf("%d requests, %d tries, %v", len(reqs), tries, err)
					}
					if reqs[0].body != reqs[1].body || reqs[0].path != reqs[1].path ||
						reqs[0].header.Get("Idempotency-Key") != reqs[1].header.Get("Idempotency-Key") {
						t.Errorf("the second try is another request: %v", reqs)
					}
				})
			})
		}
	}
}

func TestAnAnswerOfAnotherShapeIsAnUnknownOutcomeInTheEnd(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-ID", "r-1")
		respond(w, 200, `{"hello":"world"}`)
	})
	c := srv.client(t)
	_, err := c.Add(t.Context(), theNote())
	var e *memwrite.Error
	if !errors.As(err, &e) || !errors.Is(err, memwrite.ErrUnknownOutcome) || e.Tries != 5 || e.Status != 200 || e.RequestID != "r-1" ||
		e.Message != "the answer names neither a memory nor an outcome" {
		t.Errorf("%#v", e)
	}
	if v := memwrite.VerdictOf(err); v.Action != memwrite.RetryAfter {
		t.Error(v)
	}
	before := len(srv.requests())
	req := theNote()
	req.Ref = memwrite.Ref{}
	if _, err = c.Add(t.Context(), req); !errors.Is(err, memwrite.ErrUnknownOutcome) || len(srv.requests()) != before+1 {
		t.Errorf("without an identity: %v, %d requests", err, len(srv.requests())-before)
	}
}

// What a first answer left behind must not stand in the result of a second.
func TestNothingOfAnAnswerThatDidNotFitIsKept(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			respond(w, 200, `{"id":7,"text":"another","memory_ids":"none"}`)
			return
		}
		respond(w, 200, `{"status":"skipped","reason":"already_ingested"}`)
	})
	res, err := srv.client(t).Add(t.Context(), theNote())
	if err != nil || res.Outcome != memwrite.AlreadyIngested || res.Memory != nil || len(res.MemoryIDs) != 0 || res.Tries != 2 {
		t.Errorf("%+v, %v", res, err)
	}
}

// A server that answers one operation wrongly is up: the gate, which would hold
// back every other call, stays open.
func TestAnAnswerOfAnotherShapeDoesNotShutTheGate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var kinds []memwrite.ObservationKind
		c := bubbleClient(t, func(r *http.Request) (int, http.Header, string) {
			if r.Method == http.MethodGet {
				return 200, nil, `{}`
			}
			return 201, nil, storedBody
		}, memwrite.WithObserver(memwrite.ObserverFunc(func(o memwrite.Observation) {
			mu.Lock()
			kinds = append(kinds, o.Kind)
			mu.Unlock()
		})))
		for range 20 {
			c.Memory(t.Context(), "acme", 1)
		}
		if res, err := c.Add(t.Context(), theNote()); err != nil || res.Tries != 1 {
			t.Error(res, err)
		}
		if slices.Contains(kinds, memwrite.ObserveGateShut) {
			t.Error("the gate shut")
		}
	})
}
