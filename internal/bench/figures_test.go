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

// measure makes n calls one after the other.
func measure(t *testing.T, n int, call func() error) cost {
	t.Helper()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	for range n {
		if err := call(); err != nil {
			t.Fatal(err)
		}
	}
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	return cost{
		took / time.Duration(n),
		float64(after.Mallocs-before.Mallocs) / float64(n),
		float64(after.TotalAlloc-before.TotalAlloc) / float64(n),
	}
}

func (c cost) best(d cost) cost {
	if c.time == 0 {
		return d
	}
	return cost{min(c.time, d.time), min(c.allocs, d.allocs), min(c.bytes, d.bytes)}
}

// compare interleaves rounds of the two and keeps the best of each.
func compare(t *testing.T, n int, sdk, raw func() error) (ofSDK, ofRaw cost) {
	t.Helper()
	measure(t, n/10+1, sdk) // connections, caches of types, pools
	measure(t, n/10+1, raw)
	for range *rounds {
		ofSDK = ofSDK.best(measure(t, n, sdk))
		ofRaw = ofRaw.best(measure(t, n, raw))
	}
	return ofSDK, ofRaw
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
	sdk, raw := compare(t, 4000, newSDK(t, "http://server.example", hc), newRaw("http://server.example", hc))
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
	measure(t, calls, call)
	if !figure("sdk.loopback.writes", float64(wires.Load()-before)/calls, 1) {
		t.Fail()
	}
}
