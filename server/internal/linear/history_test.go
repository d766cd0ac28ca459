package linear

import (
	"math"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// history is what clients did and saw. It is safe for concurrent use.
type history struct {
	began time.Time

	mu      sync.Mutex
	ops     []porcupine.Operation
	unknown int
}

func newHistory() *history { return &history{began: time.Now()} }

// now is the time in the history; the clock it is read from does not jump.
func (h *history) now() int64 { return time.Since(h.began).Nanoseconds() }

// add records a call. known false means that no answer came: it may have had
// its effect at any time after call, or not at all.
func (h *history) add(client int, call int64, in, out any, known bool) {
	op := porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: h.now()}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !known {
		op.Return = math.MaxInt64
		h.unknown++
	}
	h.ops = append(h.ops, op)
}

// by splits a history where what happens in one part does not bear on another.
func by(part func(in any) string) func([]porcupine.Operation) [][]porcupine.Operation {
	return func(ops []porcupine.Operation) [][]porcupine.Operation {
		parts := map[string][]porcupine.Operation{}
		for _, op := range ops {
			k := part(op.Input)
			parts[k] = append(parts[k], op)
		}
		out := make([][]porcupine.Operation, 0, len(parts))
		for _, ops := range parts {
			out = append(out, ops)
		}
		return out
	}
}

// checkFor is how long one history may be checked; above it the outcome is
// unknown, which counts as a failure.
const checkFor = 30 * time.Second

func check(m porcupine.NondeterministicModel, ops []porcupine.Operation) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(m.ToModel(), ops, checkFor)
}

// one is the only state that can follow, or none.
func one(ok bool, state any) []any {
	if !ok {
		return nil
	}
	return []any{state}
}
