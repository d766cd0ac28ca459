package conformance

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// whole is an integer field of an object.
func whole(fields map[string]any, name string) int64 {
	n, _ := fields[name].(json.Number)
	v, _ := n.Int64()
	return v
}

func eventChecks() []*check {
	fm := []need{needFishMem}
	return []*check{
		{
			name: "event/evidence", promise: "SUCCEEDED shows what was stored, and each of it can be read at once", point: "FishMem 2.1, 4.4",
			needs: fm, calls: 4, credits: 2, run: func(p *probe) {
				user := p.fishMemUser()
				id := p.infer(user, p.id(), textReleases)
				e := p.succeeded(id)
				ids := resultIDs(e)
				p.want(len(ids) == 1 && ids[0] != "", "the event of one fact shows %d results: %s", len(ids), e)
				first, _ := e.list("results")[0].(map[string]any)
				p.want(strings.TrimSpace(str(first["memory"])) != "", "a result of the event has no text")
				m := p.fm(http.MethodGet, "/v1/memories/"+url.PathEscape(ids[0]), "", "")
				p.want(m.status == http.StatusOK && m.text("id") == ids[0] && m.text("memory") == str(first["memory"]), "a result of the event is read as %s", m)
				if summary, ok := e.fields["write_summary"].(map[string]any); ok {
					p.want(summary["outcome"] == "STORED" && whole(summary, "planned") == 1 && whole(summary, "persisted") == 1 && whole(summary, "failed") == 0,
						"write_summary of one stored fact is %v", summary)
				}
				p.want(e.text("started_at") != "" && e.text("completed_at") != "" && e.fields["error"] == nil, "the event that SUCCEEDED misses a time or keeps an error: %s", e)
				attempts := whole(e.fields, "attempts")
				p.want(attempts >= 1 && attempts <= whole(e.fields, "max_attempts"), "the event took %d attempts of %d", attempts, whole(e.fields, "max_attempts"))
				scope, _ := e.fields["scope"].(map[string]any)
				p.want(len(scope) == 1 && scope["user_id"] == user, "the event's scope is %v", scope)
			},
		},
		{
			name: "event/no-memory", promise: "Nothing worth storing is a success without results", point: "FishMem 2.1",
			needs: fm, calls: 3, credits: 2, run: func(p *probe) {
				user := p.fishMemUser()
				e := p.ended(p.infer(user, p.id(), textFiller))
				p.want(e.text("status") == "SUCCEEDED" && len(e.list("results")) == 0, "a write of filler ended as %s", e)
				if summary, ok := e.fields["write_summary"].(map[string]any); ok {
					p.want(summary["outcome"] == "NO_MEMORY", "write_summary of nothing stored is %v", summary)
				}
				n := p.memories(user)
				p.want(n == 0, "a write of filler stored %d memories", n)
			},
		},
		{
			name: "event/privacy", promise: "Events and operations never show content, metadata or leases", point: "FishMem 2.1",
			needs: fm, calls: 4, credits: 2, run: func(p *probe) {
				user, marker := p.fishMemUser(), "zq"+p.s.run+"zq"
				id := p.event(p.post(p.id(), object("user_id", user, "metadata", map[string]string{"m": marker}, "messages", []any{
					map[string]string{"role": "user", "content": textReleases},
					map[string]string{"role": "assistant", "content": "Noted, " + marker + "."},
				})))
				e := p.ended(id)
				op := p.fm(http.MethodGet, "/v1/operations/"+url.PathEscape(id), "", "")
				list := p.fm(http.MethodGet, "/v1/events?limit=100", "", "")
				for what, a := range map[string]answer{"the event": e, "the operation": op, "the list of events": list} {
					p.want(!strings.Contains(string(a.body), marker), "%s shows the input", what)
					for _, field := range []string{"content", "messages", "payload", "lease_token", "lease_owner", "lease_expires_at"} {
						_, has := a.fields[field]
						p.want(!has, "%s shows %s", what, field)
					}
				}
			},
		},
		{
			name: "event/list", promise: "Events are listed newest first, by page and by status, and bad parameters are refused", point: "FishMem 1.6, 2.4",
			needs: fm, calls: 10, credits: 4, run: func(p *probe) {
				user := p.fishMemUser()
				one := p.infer(user, p.id(), textReleases)
				p.ended(one)
				p.ended(p.infer(user, p.id(), textOffice))
				first := p.fm(http.MethodGet, "/v1/events?limit=1&status=SUCCEEDED", "", "")
				p.want(first.ok() && len(first.list("results")) == 1 && first.text("next_cursor") != "", "a page of one of several events is %s", first)
				second := p.fm(http.MethodGet, "/v1/events?limit=1&status=SUCCEEDED&cursor="+url.QueryEscape(first.text("next_cursor")), "", "")
				p.want(second.ok() && len(second.list("results")) == 1, "the second page is %s", second)
				a, b := resultIDs(first)[0], resultIDs(second)[0]
				p.want(a != b, "two pages show the same event %s", a)
				newer, older := created(first), created(second)
				p.want(newer >= older, "the first page shows an event of %s, the second a newer one of %s", newer, older)
				failed := p.fm(http.MethodGet, "/v1/events?limit=100&status=FAILED", "", "")
				p.want(failed.ok() && !slices.Contains(resultIDs(failed), one), "an event that SUCCEEDED is listed as FAILED")
				for query, code := range map[string]string{
					"limit=0": "INVALID_REQUEST", "limit=101": "INVALID_REQUEST", "status=DONE": "INVALID_REQUEST", "cursor=conform": "INVALID_CURSOR",
				} {
					a := p.fm(http.MethodGet, "/v1/events?"+query, "", "")
					p.want(a.status == http.StatusBadRequest && a.code() == code, "events?%s answers %s", query, a)
				}
			},
		},
		{
			name: "event/operation", promise: "An event is an operation under the same id", point: "FishMem 1.7",
			needs: fm, calls: 3, credits: 2, run: func(p *probe) {
				id := p.infer(p.fishMemUser(), p.id(), textReleases)
				e := p.ended(id)
				op := p.fm(http.MethodGet, "/v1/operations/"+url.PathEscape(id), "", "")
				status := map[string]string{"SUCCEEDED": "success", "FAILED": "dead"}[e.text("status")]
				p.want(op.ok() && op.text("id") == id && op.text("kind") == "memory_infer" && op.text("status") == status,
					"the operation of an event that is %s is %s", e.text("status"), op)
			},
		},
		{
			name: "event/final", promise: "SUCCEEDED is final: a retry of it is 404 OPERATION_NOT_RETRYABLE and changes nothing", point: "FishMem 2.2, 2.6",
			needs: fm, calls: 4, credits: 2, run: func(p *probe) {
				id := p.infer(p.fishMemUser(), p.id(), textReleases)
				before := p.succeeded(id)
				a := p.fm(http.MethodPost, "/v1/operations/"+url.PathEscape(id)+"/retry", "", "")
				p.want(a.status == http.StatusNotFound && a.code() == "OPERATION_NOT_RETRYABLE", "the retry of a write that SUCCEEDED answers %s", a)
				after := p.look(id)
				p.want(after.text("status") == "SUCCEEDED" && after.text("updated_at") == before.text("updated_at"), "the retry changed the event: %s", after)
			},
		},
		{
			name: "event/hold", promise: "A request that prefers to wait is held until the state changes, and an ended event answers at once", point: "ours: Prefer (RFC 7240)",
			needs: []need{needFishMem, needFaults, needHold}, calls: 10, credits: 8, run: func(p *probe) {
				user := p.fishMemUser()
				hold := func(id string) (answer, time.Duration) {
					began := time.Now()
					a := p.do(p.s.fishMem, request{method: http.MethodGet, path: "/v1/events/" + url.PathEscape(id), header: map[string]string{"Prefer": "wait=20"}})
					return a, time.Since(began)
				}
				for range 4 {
					key := p.id()
					// A runner stands still, so that there is something to wait for.
					n := p.fault(fault{Kind: "freeze_runner", Point: "before_inference", Key: key})
					id := p.infer(user, key, textReleases)
					before := p.look(id)
					for before.text("status") == "PENDING" && p.waiting() { // without asking to be held
						p.nap(2 * time.Millisecond)
						before = p.do(p.s.fishMem, request{method: http.MethodGet, path: "/v1/events/" + url.PathEscape(id), poll: true})
					}
					a, took := hold(id)
					p.want(a.ok() && a.header.Get("Preference-Applied") != "", "a read that prefers to wait answers %s without Preference-Applied", a)
					p.s.control.disarm(p.ctx, n)
					p.ended(id)
					moved := a.text("status") != before.text("status") || a.fields["attempts"] != before.fields["attempts"]
					if ended(before) {
						continue // it was too quick to be waited for
					}
					p.want(moved || took >= 10*time.Second, "a read that prefers to wait was answered after %s, with the state unchanged", took)
					a, took = hold(id)
					p.want(a.ok() && took < 10*time.Second, "an ended event is held for %s", took)
					return
				}
				panic(impossible{"every write ended before it could be waited for"})
			},
		},
	}
}

func ended(event answer) bool {
	s := event.text("status")
	return s == "SUCCEEDED" || s == "FAILED"
}

func str(v any) string {
	s, _ := v.(string)
	return s
}

// created is the time of the first event of a page.
func created(page answer) string {
	first, _ := page.list("results")[0].(map[string]any)
	return str(first["created_at"])
}
