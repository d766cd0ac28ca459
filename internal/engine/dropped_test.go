package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/internal/store/memory"
)

// endsAfter is a context that is over after it was asked so many times.
type endsAfter struct {
	context.Context
	left  int
	cause error
}

func (c *endsAfter) Err() error {
	if c.left--; c.left < 0 {
		return c.cause
	}
	return nil
}

func (*endsAfter) Value(any) any { return nil } // so that context.Cause asks Err

// Wherever between two steps an attempt ends, because the lease was lost or for
// any other cause, it drops the steps it did not write: what the runner knows is
// the task as it is stored.
func TestAnAttemptThatEndsEarlyDropsItsSteps(t *testing.T) {
	t.Parallel()
	for name, cause := range map[string]error{"lease": errLeaseLost, "other": errors.New("the store is gone")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dropped := 0
			for asked := 0; ; asked++ {
				e := New(Config{Store: memory.New(1), Scheduler: sched.Real(), OnError: func(error) {},
					Extractor: protocol.ExtractorFunc(func(context.Context, protocol.Input) ([]protocol.Fact, error) {
						return []protocol.Fact{{Text: "Ships releases every Thursday", Type: "fact"}}, nil
					})})
				w := protocol.Workspace{ID: "w", AddsPerMonth: -1, Credits: -1}
				if err := e.PutWorkspace(t.Context(), w); err != nil {
					t.Fatal(err)
				}
				c := protocol.Command{Kind: protocol.Infer, Key: "k", Scope: protocol.Scope{UserID: "sam"}, Text: "My team ships releases every Thursday."}
				a := protocol.Accept(protocol.Proposal{Workspace: w, Command: &c, TaskID: "task_1", MaxAttempts: 5, Now: time.Now()}).Claimed("me", "token", time.Minute)
				task, _, err := e.store.Accept(t.Context(), a)
				if err != nil {
					t.Fatal(err)
				}
				r := e.newRunner(task, w)
				r.ctx = &endsAfter{t.Context(), asked, cause}
				err = r.attempt()
				if r.decided {
					t.Errorf("asked %d times: steps are left that nobody writes", asked)
				}
				r.end(err)
				got := r.now(nil)
				e.Close()
				if got.ID != "task_1" {
					t.Errorf("asked %d times: the runner knows of task %q", asked, got.ID)
				}
				if err == nil {
					break
				}
				if !errors.Is(err, cause) {
					t.Fatal(err)
				}
				dropped++
			}
			if dropped < 4 {
				t.Errorf("ended early in %d places only", dropped)
			}
		})
	}
}
