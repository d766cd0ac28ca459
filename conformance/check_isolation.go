package conformance

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
)

func isolationChecks() []*check {
	ms := []need{needMemorySync, needOtherMS}
	fm := []need{needFishMem, needOtherFM}
	return []*check{
		{
			name: "isolation/memorysync", promise: "Another workspace neither reads nor forgets a memory, and may not name the tenant", point: "MemorySync 3.2",
			needs: ms, calls: 7, adds: 1, run: func(p *probe) {
				user := p.memorySyncUser()
				id, ok := memoryID(p.add(user, p.id(), textReleases))
				p.want(ok, "an add gives no id")
				header := map[string]string{"X-End-User-ID": user}
				a := p.do(p.s.otherMemorySync, request{method: http.MethodGet, path: "/memory/" + id, header: header})
				p.want(a.status == http.StatusNotFound, "another workspace reads a memory as %s", a)
				p.do(p.s.otherMemorySync, request{method: http.MethodDelete, path: "/memory/forget", header: header, body: object("memory_ids", []json.Number{json.Number(id)})})
				n := p.stored(user)
				p.want(n == 1, "after another workspace's forget %d memories are left of one", n)
				if p.s.tenant != "default" {
					a = p.do(p.s.otherMemorySync, request{method: http.MethodGet, path: p.listPath(user)})
					p.want(a.status == http.StatusForbidden, "another workspace that names the tenant is answered %s", a)
				}
			},
		},
		{
			name: "isolation/client-ref", promise: "The same client_ref in another workspace is another record", point: "MemorySync 4.1",
			needs: ms, calls: 5, adds: 2, run: func(p *probe) {
				user, ref := p.memorySyncUser(), p.id()
				p.want(kept(p.add(user, ref, textReleases)), "an add is not stored")
				a := p.addTo(p.s.otherMemorySync, user, ref, textReleases)
				id, _ := memoryID(a)
				p.want(a.status == http.StatusCreated, "a reference that only another workspace has used answers %s", a)
				p.do(p.s.otherMemorySync, request{
					method: http.MethodDelete, path: "/memory/forget", header: map[string]string{"X-End-User-ID": user},
					body: object("memory_ids", []json.Number{json.Number(id)}),
				})
			},
		},
		{
			name: "isolation/fishmem", promise: "Another workspace finds no event, operation or memory, and lists none", point: "FishMem 1.1, 1.6",
			needs: fm, calls: 9, credits: 2, run: func(p *probe) {
				user := p.fishMemUser()
				id := p.infer(user, p.id(), textReleases)
				e := p.succeeded(id)
				ids := resultIDs(e)
				p.want(len(ids) > 0, "the event shows no result")
				escaped := url.PathEscape(id)
				for _, tc := range [][2]string{
					{http.MethodGet, "/v1/events/" + escaped}, {http.MethodGet, "/v1/operations/" + escaped}, {http.MethodPost, "/v1/operations/" + escaped + "/retry"},
					{http.MethodGet, "/v1/memories/" + url.PathEscape(ids[0])}, {http.MethodDelete, "/v1/memories/" + url.PathEscape(ids[0])},
				} {
					r := request{method: tc[0], path: tc[1]}
					if tc[0] == http.MethodDelete {
						r.header = map[string]string{"Idempotency-Key": p.id()}
					}
					a := p.do(p.s.otherFishMem, r)
					p.want(a.status == http.StatusNotFound, "another workspace's %s %s is answered %s", tc[0], tc[1], a)
				}
				a := p.do(p.s.otherFishMem, request{method: http.MethodGet, path: "/v1/events?limit=100"})
				p.want(a.ok() && !slices.Contains(resultIDs(a), id), "another workspace lists the event")
				a = p.do(p.s.otherFishMem, request{method: http.MethodGet, path: "/v1/memories?limit=100&user_id=" + url.QueryEscape(user)})
				p.want(a.ok() && len(a.list("results")) == 0, "another workspace lists the user's memories")
			},
		},
		{
			name: "isolation/key", promise: "The same Idempotency-Key in another workspace is another intent", point: "FishMem 1.3",
			needs: fm, calls: 5, credits: 3, run: func(p *probe) {
				user, key := p.fishMemUser(), p.id()
				p.ended(p.infer(user, key, textReleases))
				header := map[string]string{"Idempotency-Key": key}
				a := p.do(p.s.otherFishMem, request{method: http.MethodPost, path: "/v1/memories", header: header, body: object("user_id", user, "content", textOffice, "infer", false)})
				p.want(a.status == http.StatusOK, "a key that only another workspace has used answers %s", a)
				p.want(len(resultIDs(a)) == 1, "a verbatim write answers %s", a)
				p.do(p.s.otherFishMem, request{method: http.MethodDelete, path: "/v1/memories/" + url.PathEscape(resultIDs(a)[0]), header: map[string]string{"Idempotency-Key": key + "-tidy"}})
			},
		},
	}
}
