//go:build unix

package crash_test

import (
	"context"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/server/internal/crash"
)

// early answers an accept before it is written, as a server that buffers does.
type early struct{ protocol.Store }

func (s early) Accept(ctx context.Context, a protocol.Acceptance) (protocol.Task, bool, error) {
	if held, err := s.TaskByIdentity(ctx, a.Task.Identity.Hash); err == nil {
		return held, true, nil
	}
	go func() {
		_ = sched.Sleep(context.Background(), sched.Real(), 50*time.Millisecond)
		_, _, _ = s.Store.Accept(context.WithoutCancel(ctx), a)
	}()
	return a.Task, false, nil
}

// forgetful commits every step and gives no task its identity, so that a
// command sent again is a new one.
type forgetful struct{ protocol.Store }

func (s forgetful) Accept(ctx context.Context, a protocol.Acceptance) (protocol.Task, bool, error) {
	a.Task.Identity = protocol.Identity{}
	return s.Store.Accept(ctx, a)
}

func mutant(name string, s protocol.Store) protocol.Store {
	switch name {
	case "early":
		return early{s}
	case "forgetful":
		return forgetful{s}
	}
	return s
}

// A server with a fault that a kill brings out is found out.
func TestMutantsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("kills servers for some seconds")
	}
	for name, found := range map[string]func(crash.Result) bool{
		"early":     func(r crash.Result) bool { return r.Lost > 0 },
		"forgetful": func(r crash.Result) bool { return r.Duplicated > 0 && r.DoubleCharged > 0 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := crash.Run(t.Context(), config(t, 12, envMutant+"="+name))
			t.Log(r)
			if err != nil || !found(r) {
				t.Errorf("not found: %+v, %v", r, err)
			}
		})
	}
}
