package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/protocol"
)

// What runs when a server stops ends, or is given back: the next process has it
// at once, and the attempt is not counted.
func TestDrainEndsOrGivesBack(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		ctx := t.Context()
		b.extract = func(ctx context.Context, in protocol.Input) ([]protocol.Fact, error) {
			d := 5 * time.Second
			if in.Text == "I take long" {
				d = time.Hour
			}
			select {
			case <-time.After(d):
				return []protocol.Fact{{Text: in.Text, Type: "fact"}}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		var ids []string
		for key, text := range map[string]string{"short": "I take a while", "long": "I take long"} {
			got, err := b.engine.Submit(ctx, "w", infer(key, text))
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, got.Task.ID)
		}
		synctest.Wait()
		until, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		start := time.Now()
		b.engine.Drain(until)
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("drained in %v", took)
		}
		late, err := b.engine.Submit(ctx, "w", infer("late", "I came late"))
		if err != nil {
			t.Fatal(err)
		}
		// A wait for what nobody here will run does not hold the server up.
		if got, err := b.engine.Await(ctx, "w", late.Task.ID, time.Minute, engine.Ended); err == nil || got.State != protocol.Pending {
			t.Errorf("%s, %v", got.State, err)
		}
		b.engine.Close()

		states := map[protocol.State]int{}
		for _, id := range ids {
			got, err := b.store.Task(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			states[got.State]++
			if got.State == protocol.Retrying && (got.Attempts != 0 || got.NextAttempt.After(time.Now()) || got.Failure != nil) {
				t.Errorf("given back as %+v", got)
			}
		}
		if states[protocol.Succeeded] != 1 || states[protocol.Retrying] != 1 {
			t.Errorf("ended as %v", states)
		}

		b.extract = nil
		next := b.node()
		next.Start()
		defer next.Close()
		start = time.Now()
		for _, id := range append(ids, late.Task.ID) {
			if got, err := next.Await(ctx, "w", id, time.Minute, engine.Ended); err != nil || got.State != protocol.Succeeded {
				t.Errorf("%s, %v", got.State, err)
			}
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("the next process had them after %v", took)
		}
	})
}

func TestDrainOfAnIdleEngineReturns(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.engine.Drain(t.Context())
		b.engine.Drain(t.Context())
	})
}
