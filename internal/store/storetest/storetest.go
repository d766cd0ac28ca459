// Package storetest is what every store must pass. A store's own test calls
// Run with a function that makes an empty one.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// Run holds a store against the contract, each rule as a subtest on a store of
// its own. open makes an empty store and closes it when its test ends.
func Run(t *testing.T, open func(t *testing.T) protocol.Store) {
	for _, c := range []struct {
		name string
		test func(*bundle)
	}{
		{"AcceptIsOneTransaction", acceptIsOneTransaction},
		{"TwinGetsWhatTheFirstWrote", twinGetsWhatTheFirstWrote},
		{"WindowEnds", windowEnds},
		{"LateFailureFreesNoOther", lateFailureFreesNoOther},
		{"ShortAccountKeepsNothing", shortAccountKeepsNothing},
		{"ConcurrentTwinsAreOneTask", concurrentTwinsAreOneTask},
		{"WorkspacesDoNotMeet", workspacesDoNotMeet},
		{"ClaimIsOnce", claimIsOnce},
		{"ClaimPagesPastWhatItSkips", claimPagesPastWhatItSkips},
		{"ClaimPagesPastManyThatItSkips", claimPagesPastManyThatItSkips},
		{"ClaimPassesOverABrokenWrite", claimPassesOverABrokenWrite},
		{"ClaimTakesEachOfManyOnce", claimTakesEachOfManyOnce},
		{"ClaimWritesARowOnceALook", claimWritesARowOnceALook},
		{"WriteNeedsItsCondition", writeNeedsItsCondition},
		{"BrokenRowIsStopped", brokenRowIsStopped},
		{"WholeLife", wholeLife},
		{"FreedIdentity", freedIdentity},
		{"ReservationEndsOnce", reservationEndsOnce},
		{"ListsAreOrderedAndPaged", listsAreOrderedAndPaged},
		{"HistoryIsReadOnce", historyIsReadOnce},
		{"RecordsAndTombstones", recordsAndTombstones},
		{"DeletionIsOneTransaction", deletionIsOneTransaction},
		{"ConcurrentDeletionsTakeARecordOnce", concurrentDeletionsTakeARecordOnce},
		{"NumbersAreNeverGivenTwice", numbersAreNeverGivenTwice},
		{"SupersededIsForgotten", supersededIsForgotten},
		{"StepsAreWrittenTogether", stepsAreWrittenTogether},
		{"OnePaysForMany", onePaysForMany},
		{"FailedKeepsItsCommandForATime", failedKeepsItsCommandForATime},
		{"RareTasksAreFound", rareTasksAreFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := &bundle{T: t, ctx: t.Context(), store: open(t), now: time.Date(2026, 8, 5, 12, 0, 0, 0, time.UTC)}
			b.must(b.store.PutWorkspace(b.ctx, workspace("w")))
			c.test(b)
			s, err := b.store.Snapshot(b.ctx)
			b.must(err)
			b.must(protocol.Check(s))
		})
	}
}

// bundle is one test's store and its clock.
type bundle struct {
	*testing.T
	ctx   context.Context
	store protocol.Store
	now   time.Time
	tasks int
}

func workspace(id string) protocol.Workspace {
	return protocol.Workspace{ID: id, AddsPerMonth: 5, Credits: 10}
}

func (b *bundle) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// wants fails unless err is target.
func (b *bundle) wants(err, target error) {
	b.Helper()
	if !errors.Is(err, target) {
		b.Fatalf("got %v, want %v", err, target)
	}
}

func (b *bundle) proposal(c protocol.Command) protocol.Acceptance {
	b.tasks++
	return protocol.Accept(protocol.Proposal{Workspace: workspace("w"), Command: &c, TaskID: taskID(b.tasks), MaxAttempts: 2, Now: b.now})
}

func taskID(n int) string { return fmt.Sprintf("task_%06d", n) }

func (b *bundle) accept(c protocol.Command) protocol.Task {
	b.Helper()
	t, twin, err := b.store.Accept(b.ctx, b.proposal(c))
	b.must(err)
	if twin {
		b.Fatal("a new command has a twin")
	}
	return t
}

// claim takes at most one due task under a lease of a minute.
func (b *bundle) claim(token string) (protocol.Task, bool) {
	b.Helper()
	ts, err := b.store.Claim(b.ctx, b.now, 1, func(t protocol.Task) (protocol.WriteSet, bool) {
		ws, _, write := protocol.Claim(t, "runner", token, time.Minute, b.now)
		return ws, write
	})
	b.must(err)
	if len(ts) == 0 {
		return protocol.Task{}, false
	}
	return ts[0], true
}

func (b *bundle) apply(ws protocol.WriteSet, err error) protocol.Task {
	b.Helper()
	b.must(err)
	t, err := b.store.Apply(b.ctx, ws)
	b.must(err)
	return t
}

// succeed carries a claimed task to its end with one fact a text.
func (b *bundle) succeed(t protocol.Task, texts ...string) protocol.Task {
	b.Helper()
	facts := make([]protocol.Fact, len(texts))
	for i, s := range texts {
		facts[i] = protocol.Fact{Text: s, Type: "fact", Key: "self/x"}
	}
	judged := make([]protocol.Judgment, len(facts))
	first, err := b.store.Allot(b.ctx, max(1, len(facts)))
	b.must(err)
	t = b.apply(protocol.FreezePlan(t, facts, judged, first, b.now))
	t = b.apply(protocol.Commit(t, b.now))
	if t.Projection == protocol.ProjectionPending {
		t = b.apply(protocol.Projected(t, b.now), nil)
	}
	return b.apply(protocol.Finish(t, b.now))
}

func add(ref string) protocol.Command {
	return protocol.Command{Kind: protocol.MemorySyncAdd, Scope: protocol.Scope{Tenant: "default", EndUser: "sam"}, ClientRef: ref, Text: "raw input of " + ref}
}

func infer(key string) protocol.Command {
	return protocol.Command{Kind: protocol.Infer, Scope: protocol.Scope{UserID: "sam", AgentID: "desk"}, Key: key, Text: "raw input of " + key}
}

// same says that two tasks are one row.
func (b *bundle) same(got, want protocol.Task) {
	b.Helper()
	if !reflect.DeepEqual(got, want) {
		b.Fatalf("got  %+v\nwant %+v", got, want)
	}
}
