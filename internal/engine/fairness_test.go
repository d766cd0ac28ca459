package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/internal/store/memory"
)

// intruding is a scheduler on which something happens between the wake-up of
// the engine's loop and what the loop does about it.
type intruding struct {
	sched.Scheduler
	woken func()
}

// loopWait is how long the loop waits when no runner is free, and nothing else.
const loopWait = 7 * time.Second

func (s *intruding) Wait(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	err := s.Scheduler.Wait(ctx, d, wake)
	if err == nil && d == loopWait && s.woken != nil {
		s.woken()
	}
	return err
}

// A runner that becomes free is for the oldest of those who wait. A command that
// arrives just then, before the loop has looked, does not get it; as long as
// nobody waits, one that arrives is taken up at once.
func TestANewCommandDoesNotOvertakeThoseThatWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var order []string // one runner: one at a time
		end := make(chan struct{})
		s := &intruding{Scheduler: sched.Real()}
		e := engine.New(engine.Config{Store: memory.New(1), Scheduler: s, Comparer: compare{}, Limits: engine.Limits{Runners: 1, RepairEvery: loopWait},
			OnError: func(err error) { t.Error(err) },
			Extractor: protocol.ExtractorFunc(func(_ context.Context, in protocol.Input) ([]protocol.Fact, error) {
				order = append(order, in.Text)
				<-end
				return nil, nil
			})})
		defer e.Close()
		if err := e.PutWorkspace(t.Context(), protocol.Workspace{ID: "w", Credits: -1}); err != nil {
			t.Fatal(err)
		}
		e.Start()
		submit := func(name string) {
			if _, err := e.Submit(t.Context(), "w", infer(name, name)); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Microsecond) // no two are of one moment
		}
		for _, name := range []string{"first", "second", "third"} {
			submit(name)
			synctest.Wait()
		}

		late := []string{"fourth", "fifth"}
		s.woken = func() {
			if len(late) > 0 {
				name := late[0]
				late = late[1:]
				submit(name)
			}
		}
		for range 5 {
			end <- struct{}{}
			synctest.Wait()
		}
		s.woken = nil
		if got := strings.Join(order, " "); got != "first second third fourth fifth" {
			t.Errorf("taken up as %s", got)
		}

		before := time.Now()
		submit("alone")
		synctest.Wait()
		if len(order) != 6 || time.Since(before) > time.Millisecond {
			t.Errorf("where nobody waits a command is not taken up at once: %s", order)
		}
		close(end)
	})
}
