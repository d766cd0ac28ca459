package inspector

import (
	"slices"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// The charts show slotCount slots of slotWidth.
const (
	slotWidth = 2 * time.Second
	slotCount = 60
	// samples bounds what a slot keeps of each duration.
	samples = 256
)

// Slot is what happened in one stretch of time.
type Slot struct {
	Start     time.Time
	Accepted  int
	Claimed   int
	Ended     int
	Depth     int // accepted and not yet ended, since the server started
	waits     []time.Duration
	latencies []time.Duration
}

// Wait is the median time from due to claimed, Latency that from accepted to
// its end; 0 when there was none.
func (s Slot) Wait() time.Duration    { return median(s.waits) }
func (s Slot) Latency() time.Duration { return median(s.latencies) }

func median(ds []time.Duration) time.Duration {
	if len(ds) == 0 {
		return 0
	}
	ds = slices.Clone(ds)
	slices.Sort(ds)
	return ds[len(ds)/2]
}

// load is the latest slots, oldest first.
type load struct {
	slots []Slot
	depth int
}

func (l *load) add(s *protocol.Step) {
	slot := l.at(s.At)
	switch s.Kind {
	case protocol.StepAccepted, protocol.StepRedriven:
		slot.Accepted++
		l.depth++
	case protocol.StepClaimed, protocol.StepReclaimed:
		slot.Claimed++
		if len(slot.waits) < samples {
			slot.waits = append(slot.waits, s.Waited)
		}
	case protocol.StepSucceeded, protocol.StepFailed:
		slot.Ended++
		// What was accepted before this process began is not counted.
		l.depth = max(l.depth-1, 0)
		if len(slot.latencies) < samples {
			slot.latencies = append(slot.latencies, s.Age)
		}
	}
	slot.Depth = l.depth
}

// at is the slot of a time, the last one when the clock went back.
func (l *load) at(t time.Time) *Slot {
	start := t.Truncate(slotWidth)
	if n := len(l.slots); n > 0 && !start.After(l.slots[n-1].Start) {
		return &l.slots[n-1]
	}
	l.slots = append(l.slots, Slot{Start: start, Depth: l.depth})
	if len(l.slots) > slotCount {
		l.slots = slices.Delete(l.slots, 0, 1)
	}
	return &l.slots[len(l.slots)-1]
}

// until fills the time between the slots, up to now.
func (l *load) until(now time.Time) []Slot {
	out := make([]Slot, slotCount)
	end := now.Truncate(slotWidth)
	if n := len(l.slots); n > 0 && l.slots[n-1].Start.After(end) {
		end = l.slots[n-1].Start
	}
	known := map[time.Time]Slot{}
	depth := 0
	first := end.Add(-(slotCount - 1) * slotWidth)
	for _, s := range l.slots {
		known[s.Start] = s
		if s.Start.Before(first) {
			depth = s.Depth
		}
	}
	for n := range out {
		start := first.Add(time.Duration(n) * slotWidth)
		s, ok := known[start]
		if !ok {
			s = Slot{Start: start, Depth: depth}
		}
		depth = s.Depth
		out[n] = s
	}
	return out
}
