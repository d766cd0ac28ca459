//go:build unix

package crash

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/sqlite"
)

// desk is one server on a SQLite file, and a caller that sends each request
// once.
type desk struct {
	*testing.T
	node *node
	db   string
}

func newDesk(t *testing.T, env ...string) *desk {
	t.Helper()
	t.Parallel()
	db := filepath.Join(t.TempDir(), "memwrite.db")
	n, err := newNode(append(env, "MEMWRITE_CRASH_DB="+db), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.kill(); n.listener.Close() })
	return &desk{t, n, db}
}

// serve starts the server, to die at the first pass of a point; "" never.
func (d *desk) serve(point protocol.Point) {
	d.Helper()
	if err := d.node.start(point, 1); err != nil {
		d.Fatal(err)
	}
}

// died waits for the server to die at its point.
func (d *desk) died(point protocol.Point) {
	d.Helper()
	<-d.node.dead
	if d.node.point != point {
		d.Fatalf("the server died at %q, not at %q", d.node.point, point)
	}
}

type answer struct {
	status   int
	replayed bool
	body     string
}

// write sends one inferred write; an answer of status 0 never came.
func (d *desk) write(key string) answer {
	d.Helper()
	req, err := http.NewRequestWithContext(d.Context(), http.MethodPost, d.node.url+"/v1/memories", strings.NewReader(`{"content":"I like green tea","user_id":"sam"}`))
	if err != nil {
		d.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+writerKey)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	req.Close = true
	req.GetBody = nil // it is not sent again by the transport
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{}
	}
	defer res.Body.Close()
	raw, _ := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header.Get("Idempotent-Replayed") == "true", string(raw)}
}

// ended waits until the write of a key has come to its end.
func (d *desk) ended(want memwrite.EventStatus) *memwrite.Event {
	d.Helper()
	c, err := memwrite.New(memwrite.WithFishMem(d.node.url, writerKey))
	if err != nil {
		d.Fatal(err)
	}
	defer c.Close()
	for e, err := range c.Events(d.Context(), memwrite.EventFilter{}) {
		if err != nil {
			d.Fatal(err)
		}
		if !e.Status.Terminal() {
			_, _ = c.WaitForEvent(d.Context(), e.ID) // FAILED is an error of it
		}
		got, err := c.Event(d.Context(), e.ID)
		if err != nil {
			d.Fatal(err)
		}
		if got.Status != want {
			d.Fatalf("ended as %s", got.Status)
		}
		return got
	}
	d.Fatal("no event")
	return nil
}

// books reads what the file holds; no server runs then. Every invariant that a
// snapshot can show is held.
func (d *desk) books() protocol.Snapshot {
	d.Helper()
	d.node.kill()
	s, err := sqlite.Open(d.Context(), d.db, sqlite.Options{})
	if err != nil {
		d.Fatal(err)
	}
	defer s.Close()
	snap, err := s.Snapshot(context.Background())
	if err == nil {
		err = protocol.Check(snap)
	}
	if err != nil {
		d.Fatal(err)
	}
	return snap
}

// one is the only task there is, with so many records and endings.
func (d *desk) one(state protocol.State, records int) protocol.Task {
	d.Helper()
	s := d.books()
	endings := 0
	for _, e := range s.Entries {
		if e.Kind == protocol.Settle || e.Kind == protocol.Release {
			endings++
		}
	}
	if len(s.Tasks) != 1 || s.Tasks[0].State != state || len(s.Records) != records || (endings == 1) != state.Terminal() {
		d.Fatalf("%d tasks, %d records, %d endings: %+v", len(s.Tasks), len(s.Records), endings, s.Tasks)
	}
	return s.Tasks[0]
}

// The row is there, the answer is not: the message is delivered again.
func TestB15_KilledBetweenCommitAndAnswer(t *testing.T) {
	for _, point := range []protocol.Point{AcceptAfter, AnswerBefore} {
		t.Run(string(point), func(t *testing.T) {
			d := newDesk(t)
			d.serve(point)
			if got := d.write("k"); got.status != 0 {
				t.Fatalf("answered %+v", got)
			}
			d.died(point)
			d.serve("")
			if got := d.write("k"); got.status != http.StatusAccepted || !got.replayed {
				t.Fatalf("delivered again: %+v", got)
			}
			d.ended(memwrite.Succeeded)
			d.one(protocol.Succeeded, 1)
		})
	}
}

// A killed server's lease runs out, and repair finds the task.
func TestB18_AKilledServersTaskIsReclaimed(t *testing.T) {
	d := newDesk(t)
	d.serve(protocol.Inference)
	d.write("k")
	d.died(protocol.Inference)
	before := d.one(protocol.Running, 0)
	d.serve("")
	d.ended(memwrite.Succeeded)
	snap := d.books()
	var claims []time.Time
	for _, tr := range snap.Transitions {
		if tr.To == protocol.Running {
			claims = append(claims, tr.At)
		}
	}
	if len(claims) != 2 || claims[1].Before(before.Lease.Expires) {
		t.Fatalf("claimed at %v, and the lease was to end at %v", claims, before.Lease.Expires)
	}
	t.Logf("reclaimed %v after the lease was over", claims[1].Sub(before.Lease.Expires))
	d.one(protocol.Succeeded, 1)
}

// The next server goes on from the plan as it was frozen. So do two in a row
// that die there.
func TestB10_B21_AFrozenPlanIsWhatEveryServerGoesOnFrom(t *testing.T) {
	d := newDesk(t)
	d.serve(protocol.AfterPlan)
	d.write("k")
	d.died(protocol.AfterPlan)
	frozen := d.one(protocol.Running, 0).Plan
	d.serve(protocol.AfterPlan)
	d.died(protocol.AfterPlan)
	// A server that went back to the model would die here.
	d.serve(protocol.Inference)
	d.ended(memwrite.Succeeded)
	got := d.one(protocol.Succeeded, 1)
	if got.Plan.Hash != frozen.Hash || got.Plan.Mutations[0].RecordID != frozen.Mutations[0].RecordID || got.Attempts != 3 {
		t.Errorf("ended with %+v at attempt %d, and frozen was %+v", got.Plan, got.Attempts, frozen)
	}
}

// The count is in the store before anything can be killed.
func TestB23_ATaskThatKillsEveryServerEndsFailed(t *testing.T) {
	d := newDesk(t, envAttempts+"=3")
	for i := range 3 {
		d.serve(protocol.BeforeInference)
		if i == 0 {
			d.write("k")
		}
		d.died(protocol.BeforeInference)
		if got := d.one(protocol.Running, 0); got.Attempts != i+1 {
			t.Fatalf("attempt %d is counted as %d", i+1, got.Attempts)
		}
	}
	d.serve("")
	if e := d.ended(memwrite.Failed); e.Attempts != 3 {
		t.Errorf("%+v", e)
	}
	d.one(protocol.Failed, 0)
}

// No marker is left that would refuse the next try.
func TestB26_KilledAtTheAcceptLeavesNoMarker(t *testing.T) {
	for point, replayed := range map[protocol.Point]bool{AcceptBefore: false, AcceptAfter: true} {
		t.Run(string(point), func(t *testing.T) {
			d := newDesk(t)
			d.serve(point)
			d.write("k")
			d.died(point)
			d.serve("")
			if got := d.write("k"); got.status != http.StatusAccepted || got.replayed != replayed {
				t.Fatalf("the retry: %+v", got)
			}
			d.ended(memwrite.Succeeded)
			d.one(protocol.Succeeded, 1)
		})
	}
}

// It is settled and nobody was told: the next server looks and does not guess.
func TestB46_KilledAfterTheSettlement(t *testing.T) {
	d := newDesk(t)
	d.serve(FinishAfter)
	d.write("k")
	d.died(FinishAfter)
	before := d.books()
	d.serve("")
	d.ended(memwrite.Succeeded)
	after := d.books()
	if len(after.Entries) != len(before.Entries) || len(after.Transitions) != len(before.Transitions) {
		t.Errorf("%d entries became %d, %d transitions %d", len(before.Entries), len(after.Entries), len(before.Transitions), len(after.Transitions))
	}
	d.one(protocol.Succeeded, 1)
}

// What a crash leaves behind is told under the ids it had, and each commit has
// its transition.
func TestB53_B55_AnEventKeepsItsIDAndIsNeverMissing(t *testing.T) {
	for _, point := range []protocol.Point{ClaimAfter, protocol.AfterCommit, protocol.BeforeFinish, FinishAfter} {
		t.Run(string(point), func(t *testing.T) {
			d := newDesk(t)
			d.serve(point)
			d.write("k")
			d.died(point)
			before := d.books() // Check holds each task against its transitions
			d.serve("")
			d.ended(memwrite.Succeeded)
			after := d.books()
			if len(after.Transitions) < len(before.Transitions) {
				t.Fatal("a transition is gone")
			}
			for i, tr := range before.Transitions {
				if after.Transitions[i] != tr {
					t.Errorf("transition %d became %+v", i, after.Transitions[i])
				}
			}
			d.one(protocol.Succeeded, 1)
		})
	}
}
