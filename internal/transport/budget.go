package transport

import "sync"

// budget bounds how many retries all calls of one client make together.
//
// Five tries a call are harmless while few calls fail. When most of them fail,
// five tries a call are five times the load on a server that already cannot
// carry it once. The bucket makes the difference: it holds 500 tokens, a retry
// takes 14 (5 after a 429, whose wait is kind in itself), and a call that
// succeeds gives back what its last retry took, or 1 if it needed none. With a
// tenth of all answers failing more comes back than is taken; with half of
// them failing the bucket runs dry within seconds and most retries stop.
//
// An empty bucket never stops a first try. It refills by successes alone, not
// by time: time says nothing about the server.
//
// Its scope is one client and one service. Callers that share a client share
// the bucket.
type budget struct {
	policy BudgetPolicy

	mu     sync.Mutex
	tokens int
}

func newBudget(p BudgetPolicy) *budget { return &budget{policy: p, tokens: p.Tokens} }

// take pays for one retry and says what it took. ok is false, and nothing is
// taken, when the bucket holds less than the price.
func (b *budget) take(throttled bool) (taken int, ok bool) {
	if b.policy.Off {
		return 0, true
	}
	cost := b.policy.Cost
	if throttled {
		cost = b.policy.Throttled
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tokens < cost {
		return 0, false
	}
	b.tokens -= cost
	return cost, true
}

// success gives back what the call's last retry took, at least 1. The bucket
// never holds more than it began with.
func (b *budget) success(taken int) {
	if b.policy.Off {
		return
	}
	b.mu.Lock()
	b.tokens = min(b.tokens+max(taken, 1), b.policy.Tokens)
	b.mu.Unlock()
}
