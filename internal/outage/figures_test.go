package outage

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"
)

var callers = flag.Int("callers", 50, "how many callers; the figures are stated for 1000")

func down(*rand.Rand) (int, string)    { return http.StatusServiceUnavailable, "" }
func limited(*rand.Rand) (int, string) { return http.StatusTooManyRequests, "5" }

func failing(share float64) func(*rand.Rand) (int, string) {
	return func(r *rand.Rand) (int, string) {
		if r.Float64() < share {
			return http.StatusServiceUnavailable, ""
		}
		return http.StatusOK, ""
	}
}

// figure prints a measured value beside its target and fails the test when the
// target is missed.
func figure(t *testing.T, name string, value float64, op string, target float64) {
	t.Helper()
	ok := op == "<=" && value <= target || op == ">=" && value >= target || op == "==" && value == target
	word := "ok"
	if !ok {
		word = "short"
		t.Fail()
	}
	fmt.Printf("figure %s %.4g %s %g %s\n", name, value, op, target, word)
}

func note(name string, value float64) { fmt.Printf("figure %s %.4g - - ok\n", name, value) }

func (s scenario) sharedAndSeparate(t *testing.T) (shared, separate outcome) {
	t.Helper()
	if s.callers = *callers; s.before == 0 {
		s.before = 12 * time.Second
	}
	shared = s.run(t)
	s.separate = true
	return shared, s.run(t)
}

func TestFigures(t *testing.T) {
	t.Run("outage", func(t *testing.T) {
		shared, separate := scenario{trouble: time.Minute, after: 40 * time.Second, answer: down}.sharedAndSeparate(t)
		figure(t, "outage.shared.amplification", shared.amplification(), "<=", 1.05)
		figure(t, "outage.separate.amplification", separate.amplification(), "<=", 1.6)
		figure(t, "outage.shared.saved", shared.savedShare(), ">=", 0.4)
		figure(t, "outage.separate.saved", separate.savedShare(), ">=", 0.4)
		figure(t, "outage.shared.peak", shared.peak(), "<=", 1.3)
		figure(t, "outage.separate.peak", separate.peak(), "<=", 2.5)
	})
	t.Run("blips", func(t *testing.T) {
		for _, blip := range []struct {
			seconds          int
			shared, separate float64 // 0: no target
		}{{2, 0.99, 0.95}, {5, 0, 0.9}, {10, 0.99, 0}} {
			s := scenario{trouble: time.Duration(blip.seconds) * time.Second, after: 5 * time.Second, answer: down}
			shared, separate := s.sharedAndSeparate(t)
			name := fmt.Sprintf("blip%ds", blip.seconds)
			if blip.shared > 0 {
				figure(t, name+".shared.saved", shared.savedShare(), ">=", blip.shared)
			}
			if blip.separate > 0 {
				figure(t, name+".separate.saved", separate.savedShare(), ">=", blip.separate)
			}
		}
	})
	t.Run("limited", func(t *testing.T) {
		shared, separate := scenario{trouble: time.Minute, after: 40 * time.Second, answer: limited}.sharedAndSeparate(t)
		figure(t, "outage.429.inside_pause", float64(shared.inside+separate.inside), "==", 0)
		figure(t, "outage.429.peak", shared.peak(), "<=", 1.3)
		note("outage.429.shared.saved", shared.savedShare())
		note("outage.429.separate.saved", separate.savedShare())
		note("outage.429.shared.amplification", shared.amplification())
		note("outage.429.separate.amplification", separate.amplification())
	})
	t.Run("flaky", func(t *testing.T) {
		shared, separate := scenario{trouble: time.Minute, after: time.Second, answer: failing(0.1)}.sharedAndSeparate(t)
		figure(t, "outage.flaky.saved", min(shared.savedShare(), separate.savedShare()), ">=", 0.999)
		figure(t, "outage.flaky.shut_share", max(shared.shutShare(), separate.shutShare()), "<=", 0.001)
	})
	t.Run("half", func(t *testing.T) {
		shared, separate := scenario{trouble: time.Minute, after: time.Second, answer: failing(0.5)}.sharedAndSeparate(t)
		for _, half := range []struct {
			name string
			outcome
		}{{"shared", shared}, {"separate", separate}} {
			note("outage.half."+half.name+".saved", half.savedShare())
			note("outage.half."+half.name+".amplification", half.amplification())
			note("outage.half."+half.name+".shut_share", half.shutShare())
		}
	})
	t.Run("redelivered", func(t *testing.T) {
		lost, doubled := 0, 0
		for _, separate := range []bool{false, true} {
			l, d := redelivered(t, *callers, separate)
			lost, doubled = lost+l, doubled+d
		}
		figure(t, "outage.redelivered.lost", float64(lost), "==", 0)
		figure(t, "outage.redelivered.doubled", float64(doubled), "==", 0)
	})
}
