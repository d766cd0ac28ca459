package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

func TestEveryStepOfAWriteIsTold(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		release := make(chan struct{})
		b.faults.arm(protocol.AfterCommit, 1, protocol.Fault{Act: protocol.Kill})
		b.faults.arm(protocol.BeforeInference, 1, protocol.Fault{Act: protocol.Freeze, Release: release})
		c := infer("k", note)
		c.Trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
		id := b.submit(c).Task.ID
		again := c
		again.Trace = "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-00f067aa0ba902b7-01"
		b.submit(again)
		other := infer("k", "Another text under the same key.")
		other.Trace = again.Trace
		if _, err := b.engine.Submit(t.Context(), "w", other); err == nil {
			t.Fatal("no conflict")
		}
		b.end(id, protocol.Succeeded)
		close(release)
		synctest.Wait()

		want := []string{
			"accepted 0", "replayed 0", "conflict 0", "claimed 1",
			"reclaimed 2", "planned 2", "committed 2", "unfinished 2",
			"reclaimed 3", "projected 3", "succeeded 3", "fenced 1",
		}
		var got []string
		for _, s := range b.told() {
			trace := c.Trace
			if s.Kind == protocol.StepReplayed || s.Kind == protocol.StepConflict {
				trace = again.Trace // of the request that came this time
			}
			if s.TaskID != id || s.Trace != trace {
				t.Errorf("%+v is of another write or trace", s)
			}
			got = append(got, fmt.Sprintf("%s %d", s.Kind, s.Attempt))
		}
		if !slices.Equal(got, want) {
			t.Errorf("told %q\nwant %q", got, want)
		}
	})
}

func TestARefusalAndAFailureAreTold(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.faults.arm(protocol.Inference, 1, protocol.Fault{Act: protocol.FailWith, Failure: protocol.Fail(protocol.InvalidOutput, "no plan")})
		b.end(b.submit(infer("k", note)).Task.ID, protocol.Failed)
		for i := range 10 {
			b.submit(infer(fmt.Sprint(i), note+fmt.Sprint(i)))
		}
		if _, err := b.engine.Submit(t.Context(), "w", infer("one too many", note)); err == nil {
			t.Fatal("not refused")
		}
		count := map[protocol.StepKind]int{}
		for _, s := range b.told() {
			count[s.Kind]++
			if s.Kind == protocol.StepFailed && s.Class != protocol.InvalidOutput {
				t.Errorf("the failure's class is %q", s.Class)
			}
		}
		if count[protocol.StepFailed] != 1 || count[protocol.StepRefused] != 1 || count[protocol.StepAccepted] != 11 {
			t.Errorf("told %v", count)
		}
	})
}
