package serverbench

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/extract"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/mockserver"
)

var (
	rounds = flag.Int("rounds", 1, "interleaved rounds; the figures are stated for the best of 5 or more")
	full   = flag.Bool("full", false, "compare with -stored tasks rather than with 20,000")
	many   = flag.Int("stored", 1_000_000, "tasks in the larger store of a -full run")
)

// few is what the larger store is compared with.
const few = 1_000

// extracted is the server's own extractor.
func extracted(_ context.Context, in protocol.Input) ([]protocol.Fact, error) {
	return extract.Facts(in.Text), nil
}

type comparer struct{}

func (comparer) Same(a, b string) bool { return extract.Same(a, b) }

func (comparer) Score(query, text string) float64 {
	return extract.Score(extract.Embed(query), extract.Embed(text))
}

// side is one of two that are compared: it makes n writes.
type side func(n int) error

// compare interleaves slices of the two sides in so many rounds of n writes
// each, and gives the best time of a write of each. What a side is made of is
// made and warmed before its time is taken.
//
// Short slices meet the same luck, for what else the machine does lasts longer.
// They share the work of the garbage collector, too: sides that make different
// amounts of garbage want rounds of one slice, each of which begins swept.
func compare(t *testing.T, rounds, n, slice int, one, two func() side) (ofOne, ofTwo time.Duration) {
	t.Helper()
	timed := func(do side, n int) time.Duration {
		start := time.Now()
		if err := do(n); err != nil {
			t.Fatal(err)
		}
		return time.Since(start)
	}
	swept := func(do side, at int) time.Duration {
		if at == 0 {
			runtime.GC()
		}
		return timed(do, slice)
	}
	least := func(best *time.Duration, took time.Duration) {
		if took /= time.Duration(n); *best == 0 || took < *best {
			*best = took
		}
	}
	for range rounds {
		first, second := one(), two()
		timed(first, 8*connections) // connections, caches of types, pools
		timed(second, 8*connections)
		var a, b time.Duration
		for at := 0; at < n; at += slice {
			a += swept(first, at)
			b += swept(second, at)
		}
		least(&ofOne, a)
		least(&ofTwo, b)
	}
	return ofOne, ofTwo
}

// always is the same side in each round.
func always(s side) func() side { return func() side { return s } }

// figure prints a measured value beside its target.
func figure(name string, value float64, op string, target float64, comment string) {
	word := "short"
	if (op == ">=" && value >= target) || (op == "<=" && value <= target) {
		word = "ok"
	}
	fmt.Printf("figure %s %.4g %s %g %s%s\n", name, value, op, target, word, comment)
}

func note(name string, value float64, comment string) {
	fmt.Printf("figure %s %.4g - - ok%s\n", name, value, comment)
}

func TestFigures(t *testing.T) { // not parallel: it measures time
	const writes = 4000
	srv := mockserver.Run(t)
	server, raw := newCaller(t, srv.URL, srv.MemorySyncKey), newCaller(t, bare(t), "")
	// The bare handler makes twice the writes, so that the rounds of both last
	// about as long: of two rounds the shorter one is lucky more often.
	twice := func(n int) error { return raw.write(2 * n) }
	ofServer, ofRaw := compare(t, *rounds, writes, writes, always(server.write), always(twice))
	ofRaw /= 2
	figure("server.memory.write_ratio", float64(ofRaw)/float64(ofServer), ">=", 0.5, "")
	note("server.memory.write_us", float64(ofServer.Nanoseconds())/1000, "")
	note("server.bare.write_us", float64(ofRaw.Nanoseconds())/1000, "")
	srv.Close()

	stored := 20_000
	if *full {
		stored = *many
	}
	comment := fmt.Sprintf(" # %d tasks stored against %d", stored, few)
	start := time.Now()
	large := newCore(t, stored)
	note("server.memory.fill_s", time.Since(start).Seconds(), comment)
	// The small store is made anew for each round: it would grow to many times
	// what it is to hold.
	lives := func(c *core) side {
		return func(n int) error {
			for range n {
				if err := c.life(t.Context()); err != nil {
					return err
				}
			}
			return nil
		}
	}
	// A round of a thousand writes is short, so there are more of them.
	ofLarge, ofSmall := compare(t, 3**rounds, few, few/10, always(lives(large)), func() side { return lives(newCore(t, few)) })
	figure("server.memory.core_scale", float64(ofLarge)/float64(ofSmall), "<=", 4, comment)
	ofLarge, ofSmall = compare(t, 3**rounds, few, few/10, always(overCore(t, large).write), func() side { return overCore(t, newCore(t, few)).write })
	figure("server.memory.http_scale", float64(ofLarge)/float64(ofSmall), "<=", 1.15, comment)
}
