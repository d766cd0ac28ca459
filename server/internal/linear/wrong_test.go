package linear

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/store/memory"
)

// The checker can fail: histories no right server could give are refused, and
// the same without the wrong answer are not.
func TestAWrongHistoryIsRefused(t *testing.T) {
	t.Parallel()
	type call struct{ in, out any }
	ms := int64(1_000_000)
	write := func(command, event string) call {
		return call{acceptIn{key: "k", command: command}, acceptOut{known: true, event: event, status: "PENDING"}}
	}
	seen := func(status string, attempts int) call {
		return call{acceptIn{key: "k", read: true}, acceptOut{known: true, event: "e1", status: status, attempts: attempts}}
	}
	conflict := call{acceptIn{key: "k", command: "two"}, acceptOut{known: true, conflict: true}}
	runner := func(do, token string, at int64, ok bool) call {
		return call{leaseIn{task: "t", do: do, token: token, call: at * ms}, leaseOut{known: true, ok: ok, returned: (at + 1) * ms}}
	}
	state := func(status string, attempts int) call {
		return call{leaseIn{task: "t", do: "read"}, leaseOut{known: true, status: status, attempts: attempts}}
	}
	spend := func(do string, units int, ok bool) call {
		return call{creditIn{do, units}, creditOut{known: true, ok: ok}}
	}
	books := func(available, reserved, settled, released int) call {
		return call{creditIn{do: "read"}, creditOut{known: true, account: account{available, reserved, settled, released}}}
	}
	for name, tc := range map[string]struct {
		model porcupine.NondeterministicModel
		calls []call
		ok    bool
	}{
		"one event a key":                        {acceptModel, []call{write("one", "e1"), write("one", "e1"), conflict, seen("SUCCEEDED", 1)}, true},
		"two events for one key":                 {acceptModel, []call{write("one", "e1"), write("one", "e2")}, false},
		"another command is no conflict":         {acceptModel, []call{write("one", "e1"), write("two", "e1")}, false},
		"a conflict with nothing":                {acceptModel, []call{conflict}, false},
		"an event goes back":                     {acceptModel, []call{write("one", "e1"), seen("SUCCEEDED", 1), seen("RUNNING", 1)}, false},
		"an event ends twice":                    {acceptModel, []call{write("one", "e1"), seen("FAILED", 1), seen("SUCCEEDED", 1)}, false},
		"an attempt is taken back":               {acceptModel, []call{write("one", "e1"), seen("RUNNING", 2), seen("RETRYING", 1)}, false},
		"one holder at a time":                   {leaseModel, []call{runner("claim", "a", 0, true), runner("claim", "b", 10, false), runner("heartbeat", "a", 20, true), runner("claim", "b", 200, true), runner("finish", "a", 210, false), runner("finish", "b", 220, true), state("SUCCEEDED", 2)}, true},
		"two holders":                            {leaseModel, []call{runner("claim", "a", 0, true), runner("claim", "b", 10, true)}, false},
		"a heartbeat that did not extend":        {leaseModel, []call{runner("claim", "a", 0, true), runner("heartbeat", "a", 100, true), runner("claim", "b", 160, true)}, false},
		"a write after the lease was another's":  {leaseModel, []call{runner("claim", "a", 0, true), runner("claim", "b", 200, true), runner("finish", "a", 210, true)}, false},
		"a holder is refused":                    {leaseModel, []call{runner("claim", "a", 0, true), runner("finish", "a", 10, false)}, false},
		"an attempt that does not count":         {leaseModel, []call{runner("claim", "a", 0, true), state("RUNNING", 0)}, false},
		"what is reserved ends once":             {creditModel, []call{spend("infer", 2, true), books(38, 2, 0, 0), spend("finish", 2, true), books(38, 0, 2, 0)}, true},
		"a write that cost nothing":              {creditModel, []call{spend("infer", 2, true), books(40, 0, 0, 0)}, false},
		"a refusal although there are credits":   {creditModel, []call{spend("infer", 2, false)}, false},
		"more is spent than there was":           {creditModel, []call{spend("infer", 40, true), spend("infer", 2, true)}, false},
		"a failure that gives nothing back":      {creditModel, []call{spend("infer", 2, true), spend("fail", 2, true), books(38, 0, 2, 0)}, false},
		"a book of two moments":                  {creditModel, []call{spend("infer", 2, true), spend("fail", 2, true), books(38, 2, 0, 2)}, false},
		"a write that is settled and given back": {creditModel, []call{spend("infer", 2, true), spend("finish", 2, true), spend("fail", 2, true)}, false},
	} {
		var ops []porcupine.Operation
		for i, c := range tc.calls {
			ops = append(ops, porcupine.Operation{Input: c.in, Output: c.out, Call: int64(2 * i), Return: int64(2*i + 1)})
		}
		if got := check(tc.model, ops); (got == porcupine.Ok) != tc.ok {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// forgetful is a store that now and then does not look for a twin, or does not
// keep what a write costs.
type forgetful struct {
	protocol.Store
	n     atomic.Int64
	twins bool // which of the two
}

func (f *forgetful) Accept(ctx context.Context, a protocol.Acceptance) (protocol.Task, bool, error) {
	if n := f.n.Add(1); n%3 == 0 {
		if f.twins {
			a.Task.Identity.Hash[0]++
			a.Task.Identity.Hash[1] = byte(n)
		} else {
			a.Entries = a.Entries[:1] // the opening of the account
		}
	}
	return f.Store.Accept(ctx, a)
}

// And servers that are wrong are found by the histories they give.
func TestAWrongServerIsFound(t *testing.T) {
	t.Parallel()
	servers := []func() *inMemory{
		func() *inMemory {
			return &inMemory{store: &forgetful{Store: memory.New(1), twins: true}, runners: true}
		},
		func() *inMemory {
			return &inMemory{store: memory.New(1), spoil: func(n *node) { n.unfenced = true }}
		},
		func() *inMemory { return &inMemory{store: &forgetful{Store: memory.New(1)}} },
	}
	found := 0
	for i, sc := range scenarios {
		for seed := range uint64(10) {
			h := servers[i]()
			if err := h.start(); err != nil {
				t.Fatal(err)
			}
			got := record(t, h, sc, seed, 0, 100)
			h.close(t)
			if check(models[sc.name], got.ops) == porcupine.Illegal {
				found++
				break
			}
		}
	}
	if found != len(scenarios) {
		t.Errorf("%d of %d wrong servers were found", found, len(scenarios))
	}
	fmt.Printf("wrong=%d found=%d\n", len(scenarios), found)
}
