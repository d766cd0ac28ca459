package linear

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/memwrite/memwrite-go/internal/backend"
	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/extract"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/internal/service"
)

const (
	fishMemKey = "fm_linear_0123456789"
	workspace  = "default"
)

// node is a server with the routes of the service and, beside them, those of a
// runner: one step of a task's life each, under a token that the caller brings.
type node struct {
	store   protocol.Store
	sched   sched.Scheduler
	engine  *engine.Engine
	handler http.Handler

	unfenced bool // of a server that is wrong: whoever comes may write
}

func newNode(ctx context.Context, store protocol.Store, clock sched.Scheduler, runners bool) (*node, error) {
	if err := store.PutWorkspace(ctx, protocol.Workspace{ID: workspace, AddsPerMonth: -1, Credits: granted}); err != nil {
		return nil, err
	}
	n := &node{store: store, sched: clock}
	n.engine = engine.New(engine.Config{
		Store: store, Scheduler: clock, Extractor: extract.Rules{PlainTurn: service.PlainTurn}, Comparer: extract.Comparer{},
		Limits: engine.Limits{
			MaxAttempts: 1000, Lease: leaseFor, RepairEvery: 20 * time.Millisecond,
			BackOff: protocol.BackOff{Base: 5 * time.Millisecond, Cap: 20 * time.Millisecond},
		},
	})
	if runners {
		n.engine.Start()
	}
	keys := service.NewKeys(service.NewKey(fishMemKey, workspace, service.ServiceFishMem, service.ScopeMemoryRead, service.ScopeMemoryWrite, service.ScopeOperationsRead))
	mux := http.NewServeMux()
	mux.HandleFunc("POST /_runner/{do}", n.step)
	mux.Handle("/", service.New(backend.New(n.engine, clock), keys, clock, extract.LowValue, service.Options{}))
	n.handler = mux
	return n, nil
}

var errNotHeld = errors.New("the lease is not held")

// step does what a runner would: decided by the protocol, kept by the store.
func (n *node) step(w http.ResponseWriter, r *http.Request) {
	ctx, id, token := r.Context(), r.URL.Query().Get("task"), r.URL.Query().Get("token")
	var err error
	switch r.PathValue("do") {
	case "claim":
		err = n.claim(ctx, id, token)
	case "heartbeat":
		err = n.write(ctx, id, token, func(t protocol.Task) (protocol.WriteSet, error) {
			return protocol.Extend(t, leaseFor, n.sched.Now()), nil
		})
	case "finish":
		err = n.finish(ctx, id, token)
	case "fail", "fail-for-good":
		class := protocol.ProviderTimeout
		if r.PathValue("do") == "fail-for-good" {
			class = protocol.InvalidOutput
		}
		err = n.write(ctx, id, token, func(t protocol.Task) (protocol.WriteSet, error) {
			return protocol.Failing(t, protocol.Fail(class, "as asked"), protocol.Workspace{ID: workspace}, time.Millisecond, n.sched.Now()), nil
		})
	}
	answer := "ok"
	if errors.Is(err, errNotHeld) {
		answer = "not held"
	} else if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]string{"answer": answer})
}

func (n *node) claim(ctx context.Context, id, token string) error {
	now := n.sched.Now()
	claimed := false
	_, err := n.store.Claim(ctx, now, 1, func(t protocol.Task) (protocol.WriteSet, bool) {
		if t.ID != id || t.State == protocol.Succeeded || t.State == protocol.Failed {
			return protocol.WriteSet{}, false
		}
		ws, mine, write := protocol.Claim(t, "client", token, leaseFor, now)
		claimed = mine
		return ws, write
	})
	if err == nil && !claimed {
		err = errNotHeld
	}
	return err
}

// write makes one write of the runner that holds token. A row that moved under
// the same lease is looked at again.
func (n *node) write(ctx context.Context, id, token string, step func(protocol.Task) (protocol.WriteSet, error)) error {
	for {
		t, err := n.store.Task(ctx, id)
		if err != nil {
			return err
		}
		if t.State != protocol.Running || (t.Lease.Token != token && !n.unfenced) {
			return errNotHeld
		}
		ws, err := step(t)
		if err != nil {
			return err
		}
		if _, err = n.store.Apply(ctx, ws); !errors.Is(err, protocol.ErrStale) {
			return err
		}
	}
}

// finish plans, commits and ends; what a former runner did is not done again.
func (n *node) finish(ctx context.Context, id, token string) error {
	for _, step := range []func(protocol.Task) (protocol.WriteSet, error){
		func(t protocol.Task) (protocol.WriteSet, error) {
			if t.Plan != nil {
				return protocol.Extend(t, leaseFor, n.sched.Now()), nil
			}
			return protocol.FreezePlan(t, nil, nil, 0, n.sched.Now())
		},
		func(t protocol.Task) (protocol.WriteSet, error) {
			if t.Committed {
				return protocol.Extend(t, leaseFor, n.sched.Now()), nil
			}
			return protocol.Commit(t, n.sched.Now())
		},
		func(t protocol.Task) (protocol.WriteSet, error) { return protocol.Finish(t, n.sched.Now()) },
	} {
		if err := n.write(ctx, id, token, step); err != nil {
			return err
		}
	}
	return nil
}
