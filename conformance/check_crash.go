package conformance

import (
	"time"
)

func crashChecks() []*check {
	faults := []need{needFishMem, needFaults}
	return []*check{
		{
			name: "crash/points", promise: "A runner that dies at any point neither loses nor doubles the write", point: "FishMem 4.4",
			needs: faults, calls: 15, credits: 10, run: func(p *probe) {
				users, ids := make([]string, len(points)), make([]string, len(points))
				for i, point := range points {
					users[i] = p.fishMemUser()
					key := p.id()
					p.fault(fault{Kind: "kill_runner", Point: point, Key: key})
					ids[i] = p.infer(users[i], key, textReleases)
				}
				for i, point := range points {
					e := p.ended(ids[i])
					p.want(e.text("status") == "SUCCEEDED" && whole(e.fields, "attempts") >= 2, "with the runner killed at %s the write is %s", point, e)
					n := p.memories(users[i])
					p.want(n == 1, "with the runner killed at %s %d memories were stored", point, n)
				}
			},
		},
		{
			name: "crash/poison", promise: "A write that kills every runner ends FAILED at its limit of attempts", point: "FishMem 4.6",
			needs: faults, calls: 4, credits: 2, run: func(p *probe) {
				user, key := p.fishMemUser(), p.id()
				p.fault(fault{Kind: "kill_runner", Point: "before_inference", Key: key, Times: -1})
				id := p.infer(user, key, textReleases)
				p.mu.Lock()
				p.failed = append(p.failed, id)
				p.mu.Unlock()
				e := p.until(id, func(a answer) bool {
					p.want(whole(a.fields, "attempts") <= whole(a.fields, "max_attempts"), "the write is in attempt %d of %d", whole(a.fields, "attempts"), whole(a.fields, "max_attempts"))
					return a.text("status") == "FAILED" || a.text("status") == "SUCCEEDED"
				})
				p.want(e.text("status") == "FAILED" && e.fields["attempts"] == e.fields["max_attempts"], "a write that kills every runner is %s", e)
				n := p.memories(user)
				p.want(n == 0, "a write that kills every runner left %d memories", n)
			},
		},
		{
			name: "crash/zombie", promise: "A runner that lost its lease and comes back changes nothing", point: "FishMem 4.6",
			needs: faults, calls: 5, credits: 2, run: func(p *probe) {
				user, key := p.fishMemUser(), p.id()
				n := p.fault(fault{Kind: "freeze_runner", Point: "after_inference", Key: key})
				id := p.infer(user, key, textReleases)
				before := p.succeeded(id) // by another runner
				p.s.control.release(p.ctx, n)
				p.nap(300 * time.Millisecond)
				after := p.look(id)
				p.want(after.text("status") == "SUCCEEDED" && after.text("updated_at") == before.text("updated_at"), "the runner that came back changed the event: %s", after)
				m := p.memories(user)
				p.want(m == 1, "with the runner that came back %d memories were stored", m)
			},
		},
		{
			name: "crash/lost-wakeup", promise: "A write whose wake-up is lost ends all the same", point: "FishMem 4.4",
			needs: faults, calls: 2, credits: 2, run: func(p *probe) {
				key := p.id()
				p.fault(fault{Kind: "lose_wakeup", Key: key})
				p.succeeded(p.infer(p.fishMemUser(), key, textReleases))
			},
		},
	}
}
