package memory

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// A list is held against a slice that is sorted anew after each step, with few
// moments so that most rows are of one.
func TestAListIsASortedSlice(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	start := time.Date(2026, 8, 5, 12, 0, 0, 0, time.UTC)
	var l list[*protocol.Record]
	var want []*protocol.Record // newest first
	for i := range 6 * listBlock {
		if len(want) > 0 && rng.IntN(4) == 0 {
			gone := rng.IntN(len(want))
			l.remove(want[gone])
			l.remove(want[gone]) // a second time changes nothing
			want = slices.Delete(want, gone, gone+1)
		} else {
			r := &protocol.Record{ID: fmt.Sprint(rng.Uint64()), CreatedAt: start.Add(time.Duration(rng.IntN(3)) * time.Second)}
			l.insert(r)
			want = append(want, r)
			slices.SortFunc(want, func(a, b *protocol.Record) int {
				if placeOf(a).Before(placeOf(b)) {
					return -1
				}
				return 1
			})
		}
		if i%17 != 0 {
			continue
		}
		from, after := 0, (*protocol.Place)(nil)
		if len(want) > 0 && i%2 == 1 {
			from = 1 + rng.IntN(len(want))
			p := placeOf(want[from-1])
			after = &p
		}
		var got []*protocol.Record
		for c := l.newest(after); ; c.skip() {
			r, ok := c.peek()
			if !ok {
				break
			}
			got = append(got, r)
		}
		if !slices.Equal(got, want[from:]) {
			t.Fatalf("step %d: %d rows behind %d of %d", i, len(got), from, len(want))
		}
	}
	for _, b := range l.blocks {
		if len(b) == 0 || len(b) > listBlock {
			t.Errorf("a block of %d rows", len(b))
		}
	}
}

// What an insertion costs when everything was created at one moment, which is
// what a frozen clock gives.
func BenchmarkInsertOfOneMoment(b *testing.B) {
	for _, stored := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("stored=%d", stored), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 2))
			var l list[*protocol.Record]
			for range stored {
				l.insert(&protocol.Record{ID: fmt.Sprintf("%016x", rng.Uint64())})
			}
			b.ResetTimer()
			for range b.N {
				l.insert(&protocol.Record{ID: fmt.Sprintf("%016x", rng.Uint64())})
			}
		})
	}
}
