package sim

// Shrink takes operations and faults out of a script as long as the same
// invariant still fails, and gives the smallest script found with its result.
// It lives through at most so many schedules.
func Shrink(h *Worker, s *Script, invariant string, most int) (*Script, *Result) {
	best := *s
	try := func(c Script) bool {
		if most--; most < 0 {
			return false
		}
		res := h.Run(&c, false)
		if res.Violation == nil || res.Violation.Invariant != invariant {
			return false
		}
		best = c
		return true
	}
	// Chunks first, halving down to single ones, until a whole round takes
	// nothing away.
	for changed := true; changed && most > 0; {
		changed = false
		for size := max(len(best.Ops), len(best.Faults)) / 2; size >= 1; size /= 2 {
			for i := 0; i < len(best.Faults); {
				c := best
				c.Faults = without(best.Faults, i, size)
				if try(c) {
					changed = true
				} else {
					i += size
				}
			}
			for i := 0; i < len(best.Ops); {
				c := best
				c.Ops = without(best.Ops, i, size)
				if try(c) {
					changed = true
				} else {
					i += size
				}
			}
		}
	}
	return &best, h.Run(&best, true)
}

func without[T any](all []T, from, n int) []T {
	out := make([]T, 0, len(all))
	out = append(out, all[:from]...)
	return append(out, all[min(from+n, len(all)):]...)
}
