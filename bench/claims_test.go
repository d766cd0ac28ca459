package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/server/storebench"
)

// claimFigures compares a claim where very many tasks wait with one where few
// do. callers accept those many at once.
func claimFigures(t *testing.T, store string, callers int, many, few *storebench.Bench) {
	t.Helper()
	ctx := t.Context()
	n := 20_000
	if *full {
		n = *stored
	}
	start := time.Now()
	if err := many.Accepts(ctx, callers, n); err != nil {
		t.Fatal(err)
	}
	filled := time.Since(start)
	if err := few.Accepts(ctx, 256, 1000); err != nil {
		t.Fatal(err)
	}
	best, err := storebench.Best(max(1, min(*rounds, 9)), // the small one must not run dry
		storebench.Side{N: 100, Do: func(n int) error { return many.Claims(ctx, n) }},
		storebench.Side{N: 100, Do: func(n int) error { return few.Claims(ctx, n) }},
	)
	if err != nil {
		t.Fatal(err)
	}
	comment := fmt.Sprintf(" # %d tasks waiting against 1000", n)
	storebench.Figure(store+".claim_scale", float64(best[0])/float64(best[1]), "<=", 1.5, comment)
	storebench.Note(store+".claim_us", float64(best[0].Microseconds()), comment)
	storebench.Note(store+".fill_s", filled.Seconds(), comment)
}
