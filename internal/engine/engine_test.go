package engine_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
)

func TestAddIsStoredAndItsReferenceRemembered(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		s := b.submit(add(note, "note-0001"))
		task := b.end(s.Task.ID, protocol.Succeeded)
		if e := task.Result.Records; len(e) != 1 || e[0].Number != 66438 || b.text(e[0].ID) != "Ships releases every Thursday" {
			t.Fatalf("evidence %+v", e)
		}
		again := b.submit(add("An edited text entirely.", "note-0001"))
		if !again.Replayed || again.Task.ID != task.ID || b.inferences.Load() != 1 {
			t.Fatalf("replayed %v, %d inferences", again.Replayed, b.inferences.Load())
		}
		if bal := b.balance(protocol.Adds); bal.Spent != 1 || bal.Reserved != 0 {
			t.Fatalf("balance %+v", bal)
		}
	})
}

func TestEqualFactPointsAtTheExistingRecord(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		first := b.end(b.submit(add("I am allergic to peanuts.", "")).Task.ID, protocol.Succeeded)
		second := b.end(b.submit(add("I am allergic to peanuts.", "")).Task.ID, protocol.Succeeded)
		if first.ID == second.ID || len(second.Plan.Mutations) != 0 || second.Result.Records[0].Number != first.Result.Records[0].Number {
			t.Fatalf("first %+v, second %+v", first.Result, second.Result)
		}
		c := add("I am allergic to peanuts.", "")
		c.KeepSimilar = true
		b.end(b.submit(c).Task.ID, protocol.Succeeded)
		if b.records() != 2 {
			t.Fatalf("%d records", b.records())
		}
	})
}

func TestSameKeyOtherCommandIsAConflict(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		s := b.submit(infer("k", note))
		if _, err := b.engine.Submit(t.Context(), "w", infer("k", note+" ")); !errors.Is(err, protocol.ErrConflict) {
			t.Fatal(err)
		}
		verbatim := infer("k", note)
		verbatim.Kind = protocol.Verbatim
		if _, err := b.engine.Submit(t.Context(), "w", verbatim); !errors.Is(err, protocol.ErrConflict) {
			t.Fatal(err)
		}
		done := b.end(s.Task.ID, protocol.Succeeded)
		if done.Command != nil || done.Plan.Mutations[0].Fact.Text != "" {
			t.Fatal("raw input is left")
		}
		if again := b.submit(infer("k", note)); !again.Replayed || again.Task.State != protocol.Succeeded {
			t.Fatalf("%+v", again)
		}
		if bal := b.balance(protocol.Credits); bal.Spent != 2 || bal.Available != 18 {
			t.Fatalf("%+v", bal)
		}
	})
}

func TestSixtyFourPostsAreOneTask(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		var wg sync.WaitGroup
		ids := make([]string, 64)
		for i := range ids {
			wg.Go(func() { ids[i] = b.submit(infer("k", note)).Task.ID })
		}
		wg.Wait()
		for _, id := range ids {
			if id != ids[0] {
				t.Fatal("two tasks")
			}
		}
		b.end(ids[0], protocol.Succeeded)
		if b.inferences.Load() != 1 || b.balance(protocol.Credits).Spent != 2 {
			t.Fatalf("%d inferences", b.inferences.Load())
		}
	})
}

func TestFailedAddFreesItsReference(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.faults.arm(protocol.Inference, 1, protocol.Fault{Act: protocol.FailWith, Failure: protocol.Fail(protocol.Rejected, "refused")})
		failed := b.end(b.submit(add(note, "r")).Task.ID, protocol.Failed)
		again := b.submit(add(note, "r"))
		if again.Replayed || again.Task.ID == failed.ID {
			t.Fatal("the reference is still taken")
		}
		b.end(again.Task.ID, protocol.Succeeded)
		if _, err := b.engine.Redrive(t.Context(), "w", failed.ID); !errors.Is(err, protocol.ErrNotRetryable) {
			t.Fatal(err)
		}
	})
}

func TestTurnIsRecognisedForThirtyDays(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		turn := protocol.Command{Kind: protocol.Turn, Scope: protocol.Scope{Tenant: "default", EndUser: "sam"},
			Text: "I ran my first 10K last weekend and finished in 58 minutes.", Speaker: "sam", OccurredAt: "2026-06-16T09:30:00Z"}
		first := b.submit(turn)
		b.end(first.Task.ID, protocol.Succeeded)
		time.Sleep(protocol.TurnWindow - time.Second - time.Since(first.Task.CreatedAt))
		if !b.submit(turn).Replayed {
			t.Fatal("not recognised inside the window")
		}
		time.Sleep(time.Second)
		if b.submit(turn).Replayed {
			t.Fatal("recognised after the window")
		}
		other := turn
		other.OccurredAt = "2026-06-16T09:30:00.000Z"
		if b.submit(other).Replayed {
			t.Fatal("another spelling of the time is another turn")
		}
	})
}

func TestLostWakeupIsRepaired(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		synctest.Wait() // the loop is asleep
		b.faults.arm(protocol.Wakeup, 1, protocol.Fault{Act: protocol.Lose})
		start := time.Now()
		b.end(b.submit(infer("k", note)).Task.ID, protocol.Succeeded)
		if d := time.Since(start); d == 0 || d > 5*time.Second {
			t.Fatalf("repaired after %s", d)
		}
	})
}

func TestFailurePolicy(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		class    protocol.Class
		policy   int
		attempts int
		state    protocol.State
	}{
		{protocol.ProviderTimeout, 0, 3, protocol.Succeeded},
		{protocol.Infrastructure, 0, 3, protocol.Succeeded},
		{protocol.InvalidOutput, 0, 1, protocol.Failed},
		{protocol.InvalidOutput, 2, 2, protocol.Failed},
		{protocol.InvalidOutput, 3, 3, protocol.Succeeded},
		{protocol.CreditsError, 0, 1, protocol.Failed},
		{protocol.Authorization, 0, 1, protocol.Failed},
		{protocol.Rejected, 0, 1, protocol.Failed},
	} {
		t.Run(string(row.class)+strconv.Itoa(row.policy), func(t *testing.T) {
			bubble(t, func(t *testing.T, b *bundle) {
				w := protocol.Workspace{ID: "w", AddsPerMonth: 10, Credits: 20, Extraction: protocol.ExtractionPolicy{InvalidOutputAttempts: row.policy}}
				if err := b.engine.PutWorkspace(t.Context(), w); err != nil {
					t.Fatal(err)
				}
				b.faults.arm(protocol.Inference, 2, protocol.Fault{Act: protocol.FailWith, Failure: protocol.Fail(row.class, "as told")})
				task := b.end(b.submit(infer("k", note)).Task.ID, row.state)
				if task.Attempts != row.attempts {
					t.Fatalf("%d attempts", task.Attempts)
				}
				if row.state == protocol.Failed && (task.Failure.Class != row.class || task.Command == nil) {
					t.Fatalf("%+v", task.Failure)
				}
			})
		})
	}
}

func TestProjectionThatNeverHealsUndoesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.faults.arm(protocol.Projecting, 10_000, protocol.Fault{Act: protocol.FailWith, Failure: protocol.Fail(protocol.ProjectionError, "down")})
		task := b.end(b.submit(infer("k", note)).Task.ID, protocol.Succeeded)
		if task.Projection != protocol.ProjectionPending || task.Attempts != 5 || b.records() != 1 || b.inferences.Load() != 1 {
			t.Fatalf("%s, %d attempts", task.Projection, task.Attempts)
		}
		q := protocol.RecordQuery{Workspace: "w", Wire: protocol.FishMem, Scope: task.Scope}
		if m, _ := b.engine.Search(t.Context(), q, "releases", 5, nil); len(m) != 0 {
			t.Fatal("search knows it")
		}
		if rs, _ := b.engine.Records(t.Context(), q); len(rs) != 1 {
			t.Fatal("the list does not")
		}
	})
}

func TestQuotaLeavesNothingBehind(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		for i := range 10 {
			b.submit(add("Fact number "+strconv.Itoa(i)+" is here.", "r"+strconv.Itoa(i)))
		}
		_, err := b.engine.Submit(t.Context(), "w", add(note, "r10"))
		var short *protocol.InsufficientError
		if !errors.As(err, &short) || short.Strict || short.Account.Unit != protocol.Adds {
			t.Fatal(err)
		}
		if _, err := b.engine.TaskByIdentity(t.Context(), "w", protocol.ClientRef("w", "default", "", "sam", "r10")); !errors.Is(err, protocol.ErrNotFound) {
			t.Fatal("the reference is taken")
		}
		time.Sleep(31 * 24 * time.Hour) // another month
		b.end(b.submit(add(note, "r10")).Task.ID, protocol.Succeeded)
	})
}

func TestVerbatimIsDoneAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		c := protocol.Command{Kind: protocol.Verbatim, Scope: protocol.Scope{UserID: "sam"}, Key: "k", Messages: []protocol.Message{{Role: "user", Content: "one"}, {Role: "user", Content: "one"}}}
		s := b.submit(c)
		if s.Task.State != protocol.Succeeded || len(s.Task.Result.Records) != 2 || b.inferences.Load() != 0 || s.Task.Command != nil {
			t.Fatalf("%+v", s.Task)
		}
		if again := b.submit(c); !again.Replayed || again.Task.Result.Records[1] != s.Task.Result.Records[1] {
			t.Fatal("a replay differs")
		}
		if m, _ := b.engine.Search(t.Context(), protocol.RecordQuery{Workspace: "w", Wire: protocol.FishMem, Scope: c.Scope}, "one", 5, nil); len(m) != 2 {
			t.Fatalf("search finds %d", len(m))
		}
	})
}

func TestWaitEndsWithItsCallerAndTheTaskGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.extract = func(ctx context.Context, in protocol.Input) ([]protocol.Fact, error) {
			return nil, sched.Sleep(ctx, sched.Real(), 20*time.Second)
		}
		id := b.submit(infer("k", note)).Task.ID
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.engine.Await(ctx, "w", id, time.Minute, engine.Ended); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if _, err := b.engine.Await(t.Context(), "w", id, time.Second, engine.Ended); !errors.Is(err, sched.ErrElapsed) {
			t.Fatal(err)
		}
		if _, err := b.engine.Await(t.Context(), "other", id, time.Second, engine.Ended); !errors.Is(err, protocol.ErrNotFound) {
			t.Fatal(err)
		}
		b.end(id, protocol.Succeeded)
	})
}
