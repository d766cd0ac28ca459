package conformance

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// memoryID is the integer id of a stored memory.
func memoryID(a answer) (string, bool) {
	n, ok := a.fields["id"].(json.Number)
	if !ok {
		return "", false
	}
	id, err := n.Int64()
	return strconv.FormatInt(id, 10), err == nil && id > 0
}

// ingested is the answer to a reference that was there before.
func ingested(a answer) bool {
	return a.ok() && a.text("status") == "skipped" && a.text("reason") == "already_ingested"
}

// kept is the answer to a write that stored something, or that found it stored.
func kept(a answer) bool {
	_, stored := memoryID(a)
	return a.ok() && (stored || (ingested(a) && len(a.list("memory_ids")) > 0))
}

func addChecks() []*check {
	ms := []need{needMemorySync}
	faults := []need{needMemorySync, needFaults}
	return []*check{
		{
			name: "add/first", promise: "An add answers 201 with a memory that can be read at once", point: "MemorySync 1.3",
			needs: ms, calls: 4, adds: 1, run: func(p *probe) {
				user := p.memorySyncUser()
				a := p.add(user, p.id(), textReleases)
				id, ok := memoryID(a)
				p.want(a.status == http.StatusCreated && ok && a.text("text") != "", "an add answers %s, not 201 with an integer id and a text", a)
				read := p.ms(http.MethodGet, "/memory/"+id, user, "")
				got, _ := memoryID(read)
				p.want(read.status == http.StatusOK && got == id, "the memory of an add is read as %s", read)
			},
		},
		{
			name: "add/repeat", promise: "The same client_ref again stores nothing and names the first call's memories", point: "MemorySync 4.1",
			needs: ms, calls: 6, adds: 1, run: func(p *probe) {
				user, ref := p.memorySyncUser(), p.id()
				first := p.add(user, ref, textReleases)
				p.want(kept(first), "an add answers %s", first)
				n := p.stored(user)
				again := p.add(user, ref, textReleases)
				ids := again.list("memory_ids")
				p.want(ingested(again), "the same reference again answers %s, not skipped and already_ingested", again)
				p.want(len(ids) > 0 && ids[0] == first.fields["id"], "already_ingested names the memories %v, the first call stored %v", ids, first.fields["id"])
				p.want(again.text("client_ref") == ref, "already_ingested names the reference %q", again.text("client_ref"))
				after := p.stored(user)
				p.want(after == n, "%d memories after the first call, %d after the second", n, after)
			},
		},
		{
			name: "add/other-text", promise: "A client_ref names a record: other text under it is not stored", point: "MemorySync 4.1",
			needs: ms, calls: 5, adds: 1, run: func(p *probe) {
				user, ref := p.memorySyncUser(), p.id()
				first := p.add(user, ref, textReleases)
				p.want(kept(first), "an add answers %s", first)
				other := p.add(user, ref, textOffice)
				p.want(ingested(other), "another text under a known reference answers %s", other)
				n := p.stored(user)
				p.want(n == 1, "%d memories, want the first text's alone", n)
			},
		},
		{
			name: "add/concurrent", promise: "Of simultaneous first calls one stores and the others find it", point: "MemorySync 4.1",
			needs: ms, calls: 11, adds: 1, run: func(p *probe) {
				user, ref := p.memorySyncUser(), p.id()
				got := p.together(8, func(int) answer { return p.add(user, ref, textReleases) })
				for _, a := range got {
					_, stored := memoryID(a)
					p.want(stored || ingested(a), "one of eight simultaneous calls answers %s", a)
				}
				n := p.stored(user)
				p.want(n == 1, "eight simultaneous calls under one reference stored %d memories", n)
			},
		},
		{
			name: "add/ref-scope", promise: "A client_ref belongs to its end user", point: "MemorySync 4.1",
			needs: ms, calls: 6, adds: 2, run: func(p *probe) {
				ref := p.id()
				for range 2 {
					a := p.add(p.memorySyncUser(), ref, textReleases)
					p.want(a.status == http.StatusCreated, "a reference that only another end user has used answers %s", a)
				}
			},
		},
		{
			name: "add/refused", promise: "A refused add leaves its client_ref free", point: "MemorySync 4.1",
			needs: ms, calls: 4, adds: 1, run: func(p *probe) {
				user, ref := p.memorySyncUser(), p.id()
				p.do(p.s.memorySync, request{method: http.MethodPost, path: "/memory/add", body: object("client_ref", ref), header: map[string]string{"X-End-User-ID": user}})
				a := p.add(user, ref, textReleases)
				p.want(a.status == http.StatusCreated, "after a refusal the same reference answers %s", a)
			},
		},
		{
			name: "add/lost-answer", promise: "A write whose answer was lost is there once, and its repeat says so", point: "MemorySync 4.1",
			needs: faults, calls: 5, adds: 1, run: func(p *probe) {
				user, ref := p.memorySyncUser(), p.id()
				p.fault(fault{Kind: "drop_response", Key: ref})
				lost := p.add(user, ref, textReleases)
				p.want(lost.err != nil, "the answer that should be lost came: %s", lost)
				again := p.add(user, ref, textReleases)
				p.want(kept(again), "after a lost answer the same reference answers %s", again)
				n := p.stored(user)
				p.want(n == 1, "a lost answer and its repeat stored %d memories", n)
			},
		},
		{
			name: "add/failed", promise: "An add that failed answers 5xx, stores nothing and frees its client_ref", point: "MemorySync 4.1",
			needs: faults, calls: 5, adds: 1, run: func(p *probe) {
				user, ref := p.memorySyncUser(), p.id()
				p.fault(fault{Kind: "provider_invalid", Key: ref})
				a := p.add(user, ref, textReleases)
				p.want(a.status >= 500 || kept(a), "an add whose extraction failed answers %s", a)
				again := p.add(user, ref, textReleases)
				p.want(kept(again), "after a failure the same reference answers %s", again)
				n := p.stored(user)
				p.want(n == 1, "a failure and its repeat stored %d memories", n)
			},
		},
		{
			name: "add/crash", promise: "A runner that dies at any point of an add neither loses nor doubles it", point: "MemorySync 4.1",
			needs: faults, calls: 20, adds: 5, run: func(p *probe) {
				users := make([]string, len(points))
				for i := range points {
					users[i] = p.memorySyncUser()
				}
				got := p.together(len(points), func(i int) answer {
					p.fault(fault{Kind: "kill_runner", Point: points[i], Key: users[i] + "-ref"})
					return p.add(users[i], users[i]+"-ref", textReleases)
				})
				for i, a := range got {
					p.want(kept(a), "with the runner killed at %s an add answers %s", points[i], a)
					n := p.stored(users[i])
					p.want(n == 1, "with the runner killed at %s %d memories were stored", points[i], n)
				}
			},
		},
		{
			name: "add/quota", promise: "A used-up monthly quota stores nothing, never claims to, and leaves the client_ref free", point: "MemorySync 1.3, 1.6",
			needs: faults, calls: 5, adds: 1, run: func(p *probe) {
				user, ref := p.memorySyncUser(), p.id()
				p.fault(fault{Kind: "exhaust_quota", Key: ref})
				a := p.add(user, ref, textReleases)
				silent := a.status == http.StatusOK && a.text("status") == "ok"
				strict := a.status == http.StatusTooManyRequests && a.code() == "limit_exceeded" && a.header.Get("Retry-After") == ""
				p.want(silent || strict, "with the month used up an add answers %s", a)
				n := p.stored(user)
				p.want(n == 0, "with the month used up %d memories were stored", n)
				again := p.add(user, ref, textReleases)
				p.want(again.status == http.StatusCreated, "after the quota was refilled the same reference answers %s", again)
			},
		},
	}
}
