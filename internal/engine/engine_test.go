package engine_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
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

// bundle is an engine on a fresh store inside a synctest bubble.
type bundle struct {
	t          *testing.T
	store      *memory.Store
	engine     *engine.Engine
	faults     *faults
	inferences atomic.Int64
	extract    func(context.Context, protocol.Input) ([]protocol.Fact, error)

	mu    sync.Mutex
	steps []protocol.Step
}

// told is every step so far.
func (b *bundle) told() []protocol.Step {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.steps)
}

// faults is armed by point; each fault fires once.
type faults struct {
	mu    sync.Mutex
	armed map[protocol.Point][]protocol.Fault
}

func (f *faults) At(p protocol.Point, _ protocol.Task) protocol.Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.armed[p]
	if len(q) == 0 {
		return protocol.Fault{}
	}
	f.armed[p] = q[1:]
	return q[0]
}

// Quiet lets the engine write steps together as long as nothing is armed.
func (f *faults) Quiet(string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, q := range f.armed {
		if len(q) > 0 {
			return false
		}
	}
	return true
}

// stepwise has the engine write every step by itself.
type stepwise struct{}

func (stepwise) At(protocol.Point, protocol.Task) protocol.Fault { return protocol.Fault{} }

func (f *faults) arm(p protocol.Point, n int, ft protocol.Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range n {
		f.armed[p] = append(f.armed[p], ft)
	}
}

type compare struct{}

func (compare) Same(a, b string) bool { return extract.Same(a, b) }
func (compare) Score(q, text string) float64 {
	return extract.Score(extract.Embed(q), extract.Embed(text))
}

// bubble runs f with a started engine and checks the invariants after it.
func bubble(t *testing.T, f func(t *testing.T, b *bundle)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bundle{t: t, store: memory.New(66438), faults: &faults{armed: map[protocol.Point][]protocol.Fault{}}}
		b.engine = b.node()
		defer b.engine.Close()
		if err := b.engine.PutWorkspace(t.Context(), protocol.Workspace{ID: "w", AddsPerMonth: 10, Credits: 20}); err != nil {
			t.Fatal(err)
		}
		b.engine.Start()
		f(t, b)
		if err := b.engine.Check(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// node is another engine on the same store.
func (b *bundle) node() *engine.Engine {
	return engine.New(engine.Config{Store: b.store, Scheduler: sched.Real(), Comparer: compare{}, Faults: b.faults,
		OnError: func(err error) { b.t.Error(err) },
		Observe: func(s protocol.Step) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.steps = append(b.steps, s)
		},
		Extractor: protocol.ExtractorFunc(func(ctx context.Context, in protocol.Input) ([]protocol.Fact, error) {
			b.inferences.Add(1)
			if b.extract != nil {
				return b.extract(ctx, in)
			}
			var out []protocol.Fact
			out = append(out, extract.Facts(in.Text)...)
			return out, nil
		})})
}

func add(text, ref string) protocol.Command {
	return protocol.Command{Kind: protocol.MemorySyncAdd, Scope: protocol.Scope{Tenant: "default", EndUser: "sam"}, Text: text, ClientRef: ref}
}

func infer(key, text string) protocol.Command {
	return protocol.Command{Kind: protocol.Infer, Scope: protocol.Scope{UserID: "sam"}, Text: text, Key: key}
}

func (b *bundle) submit(c protocol.Command) engine.Submitted {
	b.t.Helper()
	s, err := b.engine.Submit(b.t.Context(), "w", c)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// end waits for a task's end, for up to an hour of the bubble.
func (b *bundle) end(id string, want protocol.State) protocol.Task {
	b.t.Helper()
	t, err := b.engine.Await(b.t.Context(), "w", id, time.Hour, engine.Ended)
	if err != nil || t.State != want {
		b.t.Fatalf("task is %s (%+v, attempt %d), want %s; %v", t.State, t.Failure, t.Attempts, want, err)
	}
	return t
}

func (b *bundle) balance(u protocol.Unit) protocol.Balance {
	b.t.Helper()
	bs, err := b.engine.Usage(b.t.Context(), "w")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, x := range bs {
		if x.Account.Unit == u {
			return x
		}
	}
	return protocol.Balance{}
}

func (b *bundle) records() int {
	b.t.Helper()
	s, err := b.store.Snapshot(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return len(s.Records)
}

// text is what a record says.
func (b *bundle) text(id string) string {
	b.t.Helper()
	r, err := b.store.Record(b.t.Context(), "w", id)
	if err != nil {
		b.t.Fatal(err)
	}
	return r.Text
}

const note = "My team ships releases every Thursday."

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

func TestRunnerKilledAtEachPoint(t *testing.T) {
	t.Parallel()
	for _, p := range []struct {
		at         protocol.Point
		inferences int64
	}{{protocol.BeforeInference, 1}, {protocol.AfterInference, 2}, {protocol.AfterPlan, 1}, {protocol.AfterCommit, 1}, {protocol.BeforeFinish, 1}} {
		t.Run(string(p.at), func(t *testing.T) {
			bubble(t, func(t *testing.T, b *bundle) {
				b.faults.arm(p.at, 1, protocol.Fault{Act: protocol.Kill})
				task := b.end(b.submit(infer("k", note)).Task.ID, protocol.Succeeded)
				if task.Attempts != 2 || b.records() != 1 || b.inferences.Load() != p.inferences || b.balance(protocol.Credits).Spent != 2 {
					t.Fatalf("attempts %d, records %d, inferences %d", task.Attempts, b.records(), b.inferences.Load())
				}
			})
		})
	}
}

func TestFiveCrashesAfterTheCommitEndSucceeded(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.faults.arm(protocol.AfterCommit, 5, protocol.Fault{Act: protocol.Kill})
		task := b.end(b.submit(infer("k", note)).Task.ID, protocol.Succeeded)
		if task.Attempts != 5 || b.records() != 1 || b.balance(protocol.Credits).Spent != 2 {
			t.Fatalf("attempts %d", task.Attempts)
		}
		time.Sleep(time.Minute) // of the bubble: the projection heals by itself
		if got, _ := b.engine.Task(t.Context(), "w", task.ID); got.Projection != protocol.ProjectionReady {
			t.Fatal(got.Projection)
		}
	})
}

func TestFiveCrashesBeforeInferenceEndFailedAndRefundOnce(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.faults.arm(protocol.BeforeInference, 5, protocol.Fault{Act: protocol.Kill})
		task := b.end(b.submit(infer("k", note)).Task.ID, protocol.Failed)
		if bal := b.balance(protocol.Credits); task.Attempts != 5 || bal.Available != 20 || bal.Spent != 0 {
			t.Fatalf("attempts %d, %+v", task.Attempts, bal)
		}
		if again := b.submit(infer("k", note)); !again.Replayed || again.Task.State != protocol.Failed {
			t.Fatalf("%+v", again.Task.State)
		}
		if err := b.engine.Grant(t.Context(), "w", protocol.Credits, -19); err != nil {
			t.Fatal(err)
		}
		if _, err := b.engine.Redrive(t.Context(), "w", task.ID); !errors.Is(err, protocol.ErrInsufficient) {
			t.Fatal(err)
		}
		if err := b.engine.Grant(t.Context(), "w", protocol.Credits, 1); err != nil {
			t.Fatal(err)
		}
		if _, err := b.engine.Redrive(t.Context(), "w", task.ID); err != nil {
			t.Fatal(err)
		}
		if task = b.end(task.ID, protocol.Succeeded); task.Run != 2 || task.Attempts != 1 {
			t.Fatalf("run %d, attempts %d", task.Run, task.Attempts)
		}
		if _, err := b.engine.Redrive(t.Context(), "w", task.ID); !errors.Is(err, protocol.ErrNotRetryable) {
			t.Fatal(err)
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

func TestZombieWritesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		release := make(chan struct{})
		b.faults.arm(protocol.AfterInference, 1, protocol.Fault{Act: protocol.Freeze, Release: release})
		id := b.submit(infer("k", note)).Task.ID
		task := b.end(id, protocol.Succeeded) // by a second runner, when the first one's lease is over
		close(release)
		synctest.Wait()
		after, _ := b.engine.Task(t.Context(), "w", id)
		if after.Version != task.Version || task.Attempts != 2 || b.records() != 1 {
			t.Fatalf("version %d, then %d", task.Version, after.Version)
		}
	})
}

func TestHeartbeatKeepsASlowRunner(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.extract = func(ctx context.Context, in protocol.Input) ([]protocol.Fact, error) {
			return []protocol.Fact{{Text: "slow"}}, sched.Sleep(ctx, sched.Real(), 55*time.Second) // nearly two leases
		}
		if task := b.end(b.submit(infer("k", note)).Task.ID, protocol.Succeeded); task.Attempts != 1 || b.inferences.Load() != 1 {
			t.Fatalf("%d attempts", task.Attempts)
		}
	})
}

func TestExtractorThatIgnoresItsContextIsLeftBehind(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		hang := make(chan struct{})
		defer close(hang)
		b.extract = func(context.Context, protocol.Input) ([]protocol.Fact, error) {
			if b.inferences.Load() == 1 {
				<-hang
			}
			return nil, nil
		}
		task := b.end(b.submit(infer("k", note)).Task.ID, protocol.Succeeded)
		if task.Attempts != 2 || task.Result.Outcome != protocol.NoMemory || b.balance(protocol.Credits).Spent != 2 {
			t.Fatalf("%d attempts, %s", task.Attempts, task.Result.Outcome)
		}
	})
}

func TestManyNodesTakeAnExpiredLeaseOnce(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.faults.arm(protocol.AfterPlan, 1, protocol.Fault{Act: protocol.Kill})
		for range 4 {
			n := b.node()
			defer n.Close()
			n.Start()
		}
		task := b.end(b.submit(infer("k", note)).Task.ID, protocol.Succeeded)
		if task.Attempts != 2 || b.inferences.Load() != 1 || b.records() != 1 {
			t.Fatalf("%d attempts", task.Attempts)
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

func TestANewEngineTakesUpWhatACrashLeft(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.extract = func(ctx context.Context, in protocol.Input) ([]protocol.Fact, error) {
			if b.inferences.Load() == 1 {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return []protocol.Fact{{Text: "x"}}, nil
		}
		id := b.submit(infer("k", note)).Task.ID
		synctest.Wait()
		b.engine.Close()
		if _, err := b.engine.Submit(t.Context(), "w", infer("k2", note)); !errors.Is(err, engine.ErrClosed) {
			t.Fatal(err)
		}
		b.engine = b.node()
		b.engine.Start()
		defer b.engine.Close()
		if task := b.end(id, protocol.Succeeded); task.Attempts != 2 {
			t.Fatalf("%d attempts", task.Attempts)
		}
	})
}
