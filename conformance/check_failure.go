package conformance

import (
	"net/http"
	"net/url"
	"strings"
)

// fails makes an inferred write whose every inference is invalid, and waits
// until it is FAILED. The fault stays armed until the returned function ends
// it.
func (p *probe) fails(user, key string) (id string, event answer, pass func()) {
	n := p.fault(fault{Kind: "provider_invalid", Key: key, Times: -1})
	id = p.infer(user, key, textReleases)
	p.mu.Lock()
	p.failed = append(p.failed, id)
	p.mu.Unlock()
	event = p.ended(id)
	p.want(event.text("status") == "FAILED", "a write whose every inference is invalid ended %s", event.text("status"))
	return id, event, func() { p.s.control.disarm(p.ctx, n) }
}

func (p *probe) retry(id string) answer {
	return p.fm(http.MethodPost, "/v1/operations/"+url.PathEscape(id)+"/retry", "", "")
}

func failureChecks() []*check {
	faults := []need{needFishMem, needFaults}
	return []*check{
		{
			name: "failed/no-memory", promise: "FAILED says why, has ended, and left no memory", point: "FishMem 2.1, 2.2",
			needs: faults, calls: 4, credits: 2, run: func(p *probe) {
				user := p.fishMemUser()
				_, e, _ := p.fails(user, p.id())
				p.want(strings.TrimSpace(e.text("error")) != "" && e.text("completed_at") != "", "the event that FAILED misses its error or its end: %s", e)
				p.want(len(e.list("results")) == 0, "the event that FAILED shows results: %s", e)
				n := p.memories(user)
				p.want(n == 0, "a write that FAILED left %d memories", n)
			},
		},
		{
			name: "failed/replay", promise: "The key of a FAILED write answers FAILED and runs nothing", point: "FishMem 4.2",
			needs: faults, calls: 5, credits: 2, run: func(p *probe) {
				user, key := p.fishMemUser(), p.id()
				id, before, pass := p.fails(user, key)
				pass() // whoever ran it again now would succeed
				a := p.post(key, inferBody(user, textReleases))
				p.want(p.event(a) == id && a.text("status") == "FAILED", "the repeat of a write that FAILED answers %s", a)
				after := p.look(id)
				p.want(after.text("status") == "FAILED" && after.fields["attempts"] == before.fields["attempts"], "the repeat of a write that FAILED ran it: %s", after)
			},
		},
		{
			name: "failed/redrive", promise: "A redrive runs a FAILED write again under its own id and key", point: "FishMem 2.6",
			needs: faults, calls: 6, credits: 2, run: func(p *probe) {
				user, key := p.fishMemUser(), p.id()
				id, _, pass := p.fails(user, key)
				pass()
				a := p.retry(id)
				p.want(a.status == http.StatusAccepted && a.text("id") == id, "a redrive answers %s", a)
				e := p.ended(id)
				p.want(e.text("status") == "SUCCEEDED", "after a redrive the event is %s", e)
				n := p.memories(user)
				p.want(n == 1, "a redrive stored %d memories", n)
				a = p.post(key, inferBody(user, textReleases))
				p.want(p.event(a) == id && a.text("status") == "SUCCEEDED", "after a redrive the key answers %s", a)
			},
		},
		{
			name: "failed/redrive-credits", promise: "A redrive has to be paid anew: without credits it is 402 and changes nothing", point: "FishMem 2.6, 4.7",
			needs: faults, calls: 5, credits: 2, run: func(p *probe) {
				user := p.fishMemUser()
				id, before, _ := p.fails(user, p.id())
				p.fault(fault{Kind: "exhaust_credits", Key: id})
				a := p.retry(id)
				p.want(a.status == http.StatusPaymentRequired && a.code() == "INSUFFICIENT_CREDITS", "a redrive without credits answers %s", a)
				after := p.look(id)
				p.want(after.text("status") == "FAILED" && after.text("updated_at") == before.text("updated_at"), "a redrive that was refused changed the event: %s", after)
			},
		},
		{
			name: "failed/transient", promise: "A failure that can pass is tried again, and the write ends well", point: "FishMem 2.2",
			needs: faults, calls: 3, credits: 2, run: func(p *probe) {
				user, key := p.fishMemUser(), p.id()
				p.fault(fault{Kind: "provider_timeout", Key: key})
				e := p.ended(p.infer(user, key, textReleases))
				p.want(e.text("status") == "SUCCEEDED" && whole(e.fields, "attempts") == 2, "after one timeout of the model the write is %s", e)
				n := p.memories(user)
				p.want(n == 1, "after one timeout of the model %d memories were stored", n)
			},
		},
	}
}
