package conformance

import (
	"encoding/json"
	"net/http"
	"net/url"
)

func deleteChecks() []*check {
	fm := []need{needFishMem}
	return []*check{
		{
			name: "delete/forget", promise: "A forgotten memory is gone, and forgetting it again is no error", point: "MemorySync 1.5",
			needs: []need{needMemorySync}, calls: 5, adds: 1, run: func(p *probe) {
				user := p.memorySyncUser()
				id, ok := memoryID(p.add(user, p.id(), textReleases))
				p.want(ok, "an add gives no id")
				body := object("memory_ids", []json.Number{json.Number(id)})
				for range 2 {
					a := p.ms(http.MethodDelete, "/memory/forget", user, body)
					p.want(a.ok(), "forgetting a memory answers %s", a)
				}
				a := p.ms(http.MethodGet, "/memory/"+id, user, "")
				p.want(a.status == http.StatusNotFound, "a forgotten memory is read as %s", a)
			},
		},
		{
			name: "delete/memory", promise: "A deletion under a key gives its first answer again, and the memory is gone", point: "FishMem 1.5, 4.2",
			needs: fm, calls: 5, credits: 1, run: func(p *probe) {
				a := p.post(p.id(), object("user_id", p.fishMemUser(), "content", textReleases, "infer", false))
				ids := resultIDs(a)
				p.want(a.ok() && len(ids) == 1, "a verbatim write answers %s", a)
				path, key := "/v1/memories/"+url.PathEscape(ids[0]), p.id()
				for range 2 {
					a = p.fm(http.MethodDelete, path, key, "")
					deleted, _ := a.fields["deleted"].(bool)
					p.want(a.status == http.StatusOK && deleted, "a deletion under a key answers %s", a)
				}
				a = p.fm(http.MethodGet, path, "", "")
				p.want(a.status == http.StatusNotFound, "a deleted memory is read as %s", a)
			},
		},
		{
			name: "delete/all", promise: "The repeat of a delete-all gives the first count and spares what came later", point: "FishMem 1.5",
			needs: fm, calls: 6, credits: 2, run: func(p *probe) {
				user, key := p.fishMemUser(), p.id()
				write := func() {
					a := p.post(p.id(), object("user_id", user, "content", textReleases, "infer", false))
					p.want(a.ok(), "a verbatim write answers %s", a)
				}
				path := "/v1/memories?user_id=" + url.QueryEscape(user)
				write()
				for range 2 {
					a := p.fm(http.MethodDelete, path, key, "")
					p.want(a.ok() && whole(a.fields, "deleted") == 1, "a delete-all of one memory answers %s", a)
					if p.calls.Load() < 3 {
						write()
					}
				}
				n := p.memories(user)
				p.want(n == 1, "%d memories are left of the one written after a delete-all", n)
			},
		},
	}
}
