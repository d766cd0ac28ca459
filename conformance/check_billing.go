package conformance

import (
	"net/http"
)

// account reads what an account has come to.
func (p *probe) account(name string) charge {
	a := p.fm(http.MethodGet, "/v1/usage", "", "")
	fields, ok := a.fields[name].(map[string]any)
	p.want(ok, "/v1/usage answers %s", a)
	settled, released := whole(fields, "settled"), whole(fields, "released")
	return charge{Reserved: settled + released + whole(fields, "reserved"), Settled: settled, Released: released}
}

// open remembers what the account had come to before the check.
func (p *probe) open(account string) {
	if p.s.usage {
		p.before = p.account(account)
	}
}

// charged holds one identity to what it may have cost by now.
func (p *probe) charged(account, key string, want charge) {
	var got charge
	if p.s.usage {
		now := p.account(account)
		got = charge{now.Reserved - p.before.Reserved, now.Settled - p.before.Settled, now.Released - p.before.Released}
	} else {
		var err error
		if got, err = p.s.control.charged(p.ctx, key); err != nil {
			p.fail("%v", err)
		}
	}
	p.want(got == want, "the write reserved %d, paid %d and got %d back, want %d, %d and %d", got.Reserved, got.Settled, got.Released, want.Reserved, want.Settled, want.Released)
}

func billingChecks() []*check {
	return []*check{
		{
			name: "billing/inferred", promise: "An inferred write costs 2 credits, and its repeat nothing", point: "FishMem 4.7",
			needs: []need{needFishMem, needBooks}, calls: 3, credits: 2, run: func(p *probe) {
				user, key := p.fishMemUser(), p.id()
				p.open("credits")
				id := p.infer(user, key, textReleases)
				p.ended(id)
				p.infer(user, key, textReleases)
				p.charged("credits", key, charge{Reserved: 2, Settled: 2})
			},
		},
		{
			name: "billing/verbatim", promise: "A verbatim write costs 1 credit, and its repeat nothing", point: "FishMem 4.7",
			needs: []need{needFishMem, needBooks}, calls: 3, credits: 1, run: func(p *probe) {
				user, key := p.fishMemUser(), p.id()
				p.open("credits")
				for range 2 {
					a := p.post(key, object("user_id", user, "content", textReleases, "infer", false))
					p.want(a.ok(), "a verbatim write answers %s", a)
				}
				p.charged("credits", key, charge{Reserved: 1, Settled: 1})
			},
		},
		{
			name: "billing/failed", promise: "FAILED gives the credits back once, and a redrive pays anew", point: "FishMem 4.7",
			needs: []need{needFishMem, needBooks, needFaults}, calls: 4, credits: 2, run: func(p *probe) {
				user, key := p.fishMemUser(), p.id()
				p.open("credits")
				id, _, pass := p.fails(user, key)
				p.infer(user, key, textReleases)
				p.charged("credits", key, charge{Reserved: 2, Released: 2})
				pass()
				p.want(p.retry(id).ok(), "a redrive is refused")
				p.ended(id)
				p.mu.Lock()
				p.failed = nil
				p.mu.Unlock()
				p.charged("credits", key, charge{Reserved: 4, Settled: 2, Released: 2})
			},
		},
		{
			name: "billing/add", promise: "An add costs 1 of the month's adds, and its repeat nothing", point: "MemorySync 1.6",
			needs: []need{needMemorySync, needFishMem, needBooks}, calls: 4, adds: 1, run: func(p *probe) {
				user, ref := p.memorySyncUser(), p.id()
				p.open("adds")
				for range 2 {
					a := p.add(user, ref, textReleases)
					p.want(kept(a), "an add answers %s", a)
				}
				p.charged("adds", ref, charge{Reserved: 1, Settled: 1})
			},
		},
	}
}
