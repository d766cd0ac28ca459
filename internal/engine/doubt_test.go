package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/extract"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/internal/store/memory"
)

var errLost = errors.New("the answer was lost")

// doubtful makes the n-th write of a step and then fails all the same.
type doubtful struct {
	protocol.Store
	left atomic.Int64
}

func (d *doubtful) Apply(ctx context.Context, w protocol.WriteSet) (protocol.Task, error) {
	t, err := d.Store.Apply(ctx, w)
	if err == nil && d.left.Add(-1) == 0 {
		return protocol.Task{}, errLost
	}
	return t, err
}

// A store may have done what it could not confirm: plan, commit, projection and
// finish each. The runner looks before it writes again, and writes over nothing.
func TestAWriteWhoseAnswerIsLostIsNotWrittenOver(t *testing.T) {
	t.Parallel()
	for n := int64(1); n <= 7; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			var faults protocol.Faults = stepwise{}
			lost := n
			if n > 5 { // claim, and all the rest as one
				faults, lost = nil, n-5
			}
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := &doubtful{Store: memory.New(1)}
				d.left.Store(lost)
				e := engine.New(engine.Config{Store: d, Scheduler: sched.Real(), Comparer: compare{}, Faults: faults,
					OnError: func(err error) {
						if !errors.Is(err, errLost) {
							t.Errorf("the store stopped a write: %v", err)
						}
					},
					Extractor: protocol.ExtractorFunc(func(_ context.Context, in protocol.Input) ([]protocol.Fact, error) {
						var out []protocol.Fact
						out = append(out, extract.Facts(in.Text)...)
						return out, nil
					})})
				defer e.Close()
				if err := e.PutWorkspace(t.Context(), protocol.Workspace{ID: "w", Credits: 20}); err != nil {
					t.Fatal(err)
				}
				e.Start()
				synctest.Wait() // its first look is over, which would be a claim of another kind
				got, err := e.Submit(t.Context(), "w", infer("k", "My team ships releases every Thursday."))
				if err != nil {
					t.Fatal(err)
				}
				// The back-off is a second; a lease that had to run out is thirty.
				task, err := e.Await(t.Context(), "w", got.Task.ID, 10*time.Second, engine.Ended)
				if err != nil || task.State != protocol.Succeeded {
					t.Fatalf("%s, %v", task.State, err)
				}
				if rs := task.Result.Records; len(rs) != 1 {
					t.Errorf("%d records", len(rs))
				}
				if err := e.Check(t.Context()); err != nil {
					t.Error(err)
				}
				if d.left.Load() > 0 {
					t.Errorf("no answer was lost: %d writes too few", d.left.Load())
				}
			})
		})
	}
}
