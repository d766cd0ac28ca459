package inspector

import (
	"strings"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

var start = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestRepeatsConflictsAndNearMissesAreTold(t *testing.T) {
	post := func(seq int, id, body byte) Request {
		return Request{Seq: seq, Method: "POST", Path: "/v1/memories", Hash: protocol.Hash{id}, Body: protocol.Hash{body}}
	}
	other := post(5, 4, 1)
	other.Path = "/memory/add"
	got := mark([]Request{post(1, 1, 1), post(2, 1, 1), post(3, 1, 2), post(4, 2, 1), other, {Seq: 6, Method: "GET", Path: "/v1/events"}, post(7, 3, 3)})
	want := []string{"", "duplicate of 1", "conflict of 1", "near miss of 1", "", "", ""}
	for n, m := range got {
		said := m.Mark
		if m.Of != 0 {
			said += " of " + string(rune('0'+m.Of))
		}
		if said != want[n] {
			t.Errorf("request %d is %q, want %q", m.Seq, said, want[n])
		}
	}
}

func TestSlotsFollowTheClock(t *testing.T) {
	var l load
	step := func(k protocol.StepKind, at, age time.Duration) {
		l.add(&protocol.Step{Kind: k, At: start.Add(at), TaskID: "t", Age: age, Waited: age})
	}
	step(protocol.StepAccepted, 0, 0)
	step(protocol.StepAccepted, time.Second, 0)
	step(protocol.StepClaimed, 5*time.Second, 4*time.Second)
	step(protocol.StepSucceeded, 5*time.Second, 5*time.Second)
	step(protocol.StepFailed, 3*time.Second, time.Second) // the clock went back: the latest slot takes it

	slots := l.until(start.Add(7 * time.Second))
	if len(slots) != slotCount {
		t.Fatalf("%d slots", len(slots))
	}
	tail := slots[len(slots)-4:]
	for n, want := range []Slot{{Accepted: 2, Depth: 2}, {Depth: 2}, {Claimed: 1, Ended: 2}, {}} {
		got := tail[n]
		if got.Accepted != want.Accepted || got.Claimed != want.Claimed || got.Ended != want.Ended || got.Depth != want.Depth {
			t.Errorf("slot %d is %+v, want %+v", n, got, want)
		}
	}
	if tail[2].Wait() != 4*time.Second || tail[2].Latency() != 5*time.Second {
		t.Errorf("waited %s, latency %s", tail[2].Wait(), tail[2].Latency())
	}
	if got := l.until(start.Add(time.Hour)); got[0].Depth != 0 || got[len(got)-1].Start != start.Add(time.Hour) {
		t.Errorf("an hour later: %+v", got[0])
	}
}

func TestTheWatchForgetsTheOldestFirst(t *testing.T) {
	w := NewWatch()
	for n := range kept + 10 {
		id := "old"
		if n >= 5 {
			id = "new"
		}
		w.Observe(protocol.Step{Kind: protocol.StepReplayed, TaskID: id, At: start, Attempt: n})
	}
	if len(w.Steps("old")) != 0 || len(w.Steps("new")) != kept {
		t.Errorf("old %d, new %d", len(w.Steps("old")), len(w.Steps("new")))
	}
	for n, s := range w.Steps("new") {
		if s.Attempt != n+10 {
			t.Fatalf("step %d is %d of all", n, s.Attempt)
		}
	}
	w.Forget()
	if len(w.Steps("new")) != 0 {
		t.Error("not forgotten")
	}
}

func TestAttemptsBecomeBars(t *testing.T) {
	at := func(k protocol.StepKind, attempt int) moment {
		return moment{At: start, Kind: string(k), Label: string(k), Attempt: attempt}
	}
	p := draw([]moment{
		at("request", 0), at(protocol.StepAccepted, 0), at(protocol.StepClaimed, 1), at(protocol.StepUnfinished, 1),
		at(protocol.StepReclaimed, 2), at(protocol.StepRetrying, 2), at(protocol.StepClaimed, 3), at(protocol.StepSucceeded, 3),
	})
	var got []string
	for _, b := range p.Bars {
		got = append(got, b.Title+" "+b.Class)
	}
	if want := "attempt 1 lost, attempt 2 bad, attempt 3 good"; strings.Join(got, ", ") != want {
		t.Errorf("bars %q, want %q", got, want)
	}
	if running := draw([]moment{at(protocol.StepClaimed, 1)}); len(running.Bars) != 1 || running.Bars[0].Class != "running" {
		t.Errorf("a running attempt is %+v", running.Bars)
	}
	if len(p.Dots) != 8 || draw(nil).Width <= 0 {
		t.Errorf("%d dots", len(p.Dots))
	}
}

func TestPlacesAreRead(t *testing.T) {
	task := protocol.Task{ID: "task_1", CreatedAt: start.Add(time.Nanosecond)}
	p, ok := placeOf(cursor(task))
	if !ok || p.ID != task.ID || !p.Created.Equal(task.CreatedAt) {
		t.Errorf("%+v, %v", p, ok)
	}
	for _, bad := range []string{",", "x,task", "2026-11-30T12:00:00Z"} {
		if _, ok := placeOf(bad); ok {
			t.Errorf("%q is taken for a place", bad)
		}
	}
}

func FuzzPlace(f *testing.F) {
	f.Add("2026-11-30T12:00:00.000000001Z,task_1")
	f.Add(",")
	f.Fuzz(func(t *testing.T, s string) {
		p, ok := placeOf(s)
		if ok && p != nil {
			again, ok := placeOf(cursor(protocol.Task{ID: p.ID, CreatedAt: p.Created}))
			if !ok || again.ID != p.ID || !again.Created.Equal(p.Created) {
				t.Errorf("%q became %+v", s, again)
			}
		}
	})
}

func TestOneIsNoPlural(t *testing.T) {
	for amount, want := range map[int64]string{0: "none", 1: "1 add settled", 2: "2 adds settled"} {
		got := charge(protocol.Task{State: protocol.Succeeded, Amount: amount, Account: protocol.Account{Unit: protocol.Adds}})
		if got != want {
			t.Errorf("%d is %q, want %q", amount, got, want)
		}
	}
}
