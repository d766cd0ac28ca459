package engine_test

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/protocol"
)

// Whatever goes wrong in whatever order, every task ends, and nothing of what
// is stored contradicts anything else; checked after each step.
func TestStormOfFaultsBreaksNoInvariant(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			bubble(t, func(t *testing.T, b *bundle) {
				rnd := rand.New(rand.NewPCG(seed, 1))
				for _, p := range []protocol.Point{protocol.BeforeInference, protocol.AfterInference, protocol.AfterPlan, protocol.AfterCommit, protocol.BeforeFinish} {
					for range rnd.IntN(8) {
						b.faults.arm(p, 1, protocol.Fault{Act: []protocol.Act{protocol.Nothing, protocol.Kill, protocol.Expire}[rnd.IntN(3)]})
					}
				}
				for range rnd.IntN(8) {
					b.faults.arm(protocol.Inference, 1, protocol.Fault{Act: protocol.FailWith,
						Failure: protocol.Fail([]protocol.Class{protocol.ProviderTimeout, protocol.InvalidOutput, protocol.Rejected}[rnd.IntN(3)], "as told")})
					b.faults.arm(protocol.Projecting, 1, protocol.Fault{Act: protocol.FailWith, Failure: protocol.Fail(protocol.ProjectionError, "as told")})
					b.faults.arm(protocol.Wakeup, 1, protocol.Fault{Act: []protocol.Act{protocol.Lose, protocol.Double, protocol.Delay}[rnd.IntN(3)], Delay: int64(7 * time.Second)})
				}
				other := b.node()
				defer other.Close()
				other.Start()
				ids := map[string]bool{}
				for range 40 {
					key := strconv.Itoa(rnd.IntN(6))
					c := infer(key, note)
					switch rnd.IntN(4) {
					case 0:
						c = add("Fact "+key+" matters here.", key)
					case 1:
						c.Kind = protocol.Verbatim
					case 2:
						c.Text += key
					}
					wish := engine.Wish{}
					if rnd.IntN(2) == 0 && c.Kind == protocol.MemorySyncAdd {
						wish.Wait = patience
					}
					s, err := b.engine.SubmitWith(t.Context(), "w", c, wish)
					switch {
					case err == nil:
						ids[s.Task.ID] = true
						if rnd.IntN(3) == 0 {
							if _, err := b.engine.Redrive(t.Context(), "w", s.Task.ID); err != nil && !errors.Is(err, protocol.ErrNotRetryable) && !errors.Is(err, protocol.ErrInsufficient) {
								t.Fatal(err)
							}
						}
					case !errors.Is(err, protocol.ErrConflict) && !errors.Is(err, protocol.ErrInsufficient):
						t.Fatal(err)
					}
					time.Sleep(time.Duration(rnd.IntN(20_000)) * time.Millisecond) // of the bubble
					if err := b.engine.Check(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				for id := range ids {
					if task, err := b.engine.Await(t.Context(), "w", id, time.Hour, engine.Ended); err != nil {
						t.Fatalf("%s is still %s: %v", id, task.State, err)
					}
				}
			})
		})
	}
}
