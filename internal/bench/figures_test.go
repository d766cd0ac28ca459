package bench

import (
	"flag"
	"fmt"
	"net/http"
	"runtime"
	"testing"
	"time"
)

var rounds = flag.Int("rounds", 1, "interleaved rounds; the figures are stated for the best of 5 or more")

// cost is what one call costs.
type cost struct {
	time          time.Duration
	allocs, bytes float64
}

// allocations counts those of n calls, one after the other.
func allocations(t *testing.T, n int, call func() error) (allocs, bytes float64) {
	t.Helper()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	repeat(t, n, call)
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(n), float64(after.TotalAlloc-before.TotalAlloc) / float64(n)
}

func repeat(t *testing.T, n int, call func() error) time.Duration {
	t.Helper()
	start := time.Now()
	for range n {
		if err := call(); err != nil {
			t.Fatal(err)
		}
	}
	return time.Since(start)
}

// slice is how many calls of one kind follow each other within a round. A call
// over loopback takes 40 us or 80, for tens of milliseconds on end, as the
// threads of its two ends happen to share a processor or not: only what
// alternates faster than that meets the same luck.
const slice = 20

// compare interleaves slices of the two kinds of call in rounds of n calls
// each, and keeps the best round of each kind.
func compare(t *testing.T, n int, sdk, raw func() error) (ofSDK, ofRaw cost) {
	t.Helper()
	repeat(t, n/2, sdk) // connections, caches of types, pools
	repeat(t, n/2, raw)
	for range *rounds {
		runtime.GC()
		var a, b time.Duration
		for range n / slice {
			a += repeat(t, slice, sdk)
			b += repeat(t, slice, raw)
		}
		ofSDK.time, ofRaw.time = least(ofSDK.time, a/time.Duration(n)), least(ofRaw.time, b/time.Duration(n))
	}
	ofSDK.allocs, ofSDK.bytes = allocations(t, n, sdk)
	ofRaw.allocs, ofRaw.bytes = allocations(t, n, raw)
	return ofSDK, ofRaw
}

func least(best, next time.Duration) time.Duration {
	if best == 0 {
		return next
	}
	return min(best, next)
}

// figure prints a measured value beside its target.
func figure(name string, value, target float64) (ok bool) {
	word := "ok"
	if ok = value <= target; !ok {
		word = "short"
	}
	fmt.Printf("figure %s %.4g <= %g %s\n", name, value, target, word)
	return ok
}

func note(name string, value float64) { fmt.Printf("figure %s %.4g - - ok\n", name, value) }

func TestFigures(t *testing.T) { // not parallel: it counts the process's allocations
	hc := &http.Client{Transport: canned{}}
	sdk, raw := compare(t, 2000, newSDK(t, "http://server.example", hc), newRaw("http://server.example", hc))
	figure("sdk.canned.time_ratio", float64(sdk.time)/float64(raw.time), 1.5)
	figure("sdk.canned.allocs", sdk.allocs, 70)
	figure("sdk.canned.bytes", sdk.bytes, 6500)
	note("raw.canned.allocs", raw.allocs)
	note("raw.canned.bytes", raw.bytes)
	note("raw.canned.us", float64(raw.time)/1000)

	base, hc, wires := loopback(t)
	sdk, raw = compare(t, 2000, newSDK(t, base, hc), newRaw(base, hc))
	figure("sdk.loopback.time_ratio", float64(sdk.time)/float64(raw.time), 1.10)
	note("raw.loopback.us", float64(raw.time)/1000)

	const calls = 100
	call, before := newSDK(t, base, hc), wires.Load()
	repeat(t, calls, call)
	if !figure("sdk.loopback.writes", float64(wires.Load()-before)/calls, 1) {
		t.Fail()
	}
}
