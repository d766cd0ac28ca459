package vector_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/protocol"
)

// However many write and forget at once, on whichever node, the index holds in
// the end what is live, and no more.
func TestTheIndexHoldsWhatIsLive(t *testing.T) {
	eachIndex(t, func(t *testing.T, sub subject) {
		ctx := t.Context()
		one, other, _ := sub.engines(t)
		const writers, rounds = 4, 25
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := range rounds {
					ids := verbatim(t, one, fmt.Sprintf("%d-%d", w, i), "drinks tea", "likes tea", "sells tea")
					for n, e := range []*engine.Engine{one, other} {
						r, err := sub.store.Record(ctx, "w", ids[n])
						if err == nil {
							err = e.Forget(ctx, r)
						}
						if err != nil {
							t.Error(err)
							return
						}
					}
				}
			})
		}
		wg.Wait()
		if t.Failed() {
			return
		}
		eventually(t, func() bool { // once every task is projected
			tasks, err := one.Tasks(ctx, "w")
			if err != nil {
				t.Fatal(err)
			}
			pending := slices.ContainsFunc(tasks, func(task protocol.Task) bool { return task.Projection != protocol.ProjectionReady })
			return tea(t, other) == 10 && !pending && len(tasks) == writers*rounds && sub.held() == len(tasks)
		})
	})
}
