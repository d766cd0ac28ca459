package conformance

import (
	"encoding/json"
	"net/http"
	"strings"
)

func errorChecks() []*check {
	ms, fm := []need{needMemorySync}, []need{needFishMem}
	return []*check{
		{
			name: "errors/memorysync-auth", promise: "A missing or unknown key is 401, and a bad Bearer defeats a good key", point: "MemorySync 1.1, 3.2",
			needs: ms, calls: 3, run: func(p *probe) {
				for what, header := range map[string]map[string]string{
					"no key":                         {"X-API-Key": ""},
					"an unknown key":                 {"X-API-Key": "ms_test_conform"},
					"a bad Bearer beside a good key": {"Authorization": "Bearer conform"},
				} {
					a := p.do(p.s.memorySync, request{method: http.MethodGet, path: "/org/projects", header: header})
					p.want(a.status == http.StatusUnauthorized, "%s answers %s", what, a)
				}
			},
		},
		{
			name: "errors/memorysync-input", promise: "Bad input is refused before anything happens, with the code of the field", point: "MemorySync 3.2",
			needs: ms, calls: 3, run: func(p *probe) {
				a := p.do(p.s.memorySync, request{method: http.MethodPost, path: "/memory/query", body: object("query", "tea"), header: map[string]string{"X-End-User-ID": ""}})
				p.want(a.status == http.StatusBadRequest && a.code() == "MISSING_END_USER_ID", "a call without X-End-User-ID answers %s", a)
				a = p.ms(http.MethodPost, "/memory/add", p.id(), object("client_ref", "x"))
				p.want(a.status == http.StatusUnprocessableEntity && a.code() == "VALIDATION_ERROR", "an add without a text answers %s", a)
				a = p.ms(http.MethodPost, "/v1/memory/add_turn", "", p.turnBody(p.id(), "user", speaker, turnTime, ""))
				p.want(a.status == http.StatusUnprocessableEntity, "a turn without a text answers %s", a)
			},
		},
		{
			name: "errors/memorysync-not-found", promise: "An unknown memory is 404", point: "MemorySync 3.2",
			needs: ms, calls: 1, run: func(p *probe) {
				a := p.ms(http.MethodGet, "/memory/999999999999", p.id(), "")
				p.want(a.status == http.StatusNotFound, "an unknown memory answers %s", a)
			},
		},
		{
			name: "errors/memorysync-rate", promise: "A full rate window is 429 RATE_LIMIT_EXCEEDED, says when to come back, and leaves the client_ref free", point: "MemorySync 3.1, 3.2",
			needs: []need{needMemorySync, needFaults}, calls: 4, adds: 1, run: func(p *probe) {
				user, ref := p.memorySyncUser(), p.id()
				p.fault(fault{Kind: "status", Code: http.StatusTooManyRequests, RetryAfter: "7", Key: ref})
				a := p.do(p.s.memorySync, request{
					method: http.MethodPost, path: "/memory/add", body: object("text", textReleases, "client_ref", ref),
					header: map[string]string{"X-End-User-ID": user}, once: true,
				})
				p.want(a.status == http.StatusTooManyRequests && a.code() == "RATE_LIMIT_EXCEEDED" && a.header.Get("Retry-After") == "7", "a full rate window answers %s with Retry-After %q", a, a.header.Get("Retry-After"))
				inner, _ := a.fields["error"].(map[string]any)
				p.want(inner["retry_after"] == json.Number("7"), "the body of a full rate window says %s", a)
				a = p.add(user, ref, textReleases)
				p.want(a.status == http.StatusCreated, "after the rate window the same reference answers %s", a)
			},
		},
		{
			name: "errors/fishmem-auth", promise: "A missing or unknown key is 401 INVALID_API_KEY", point: "FishMem 3",
			needs: fm, calls: 2, run: func(p *probe) {
				for _, auth := range []string{"", "Bearer fm_conform"} {
					a := p.do(p.s.fishMem, request{method: http.MethodGet, path: "/v1/events", header: map[string]string{"Authorization": auth}})
					p.want(a.status == http.StatusUnauthorized && a.code() == "INVALID_API_KEY", "the authorization %q answers %s", auth, a)
				}
			},
		},
		{
			name: "errors/fishmem-input", promise: "Bad input is 400 with its code: no object, null, no scope, a time with an offset, a command too large", point: "FishMem 1.1, 1.4, 3",
			needs: fm, calls: 5, run: func(p *probe) {
				for _, tc := range [][3]string{
					{"a body that is no object", `["content"]`, "INVALID_BODY"},
					{"null for an optional field", `{"content":"` + textReleases + `","user_id":"conform","agent_id":null}`, "INVALID_REQUEST"},
					{"no scope", object("content", textReleases), "INVALID_REQUEST"},
					{"a time with an offset", object("content", textReleases, "user_id", "conform", "event_date", "2026-07-31T00:00:00+08:00"), "INVALID_REQUEST"},
					{"a command above 250,000 bytes", object("content", strings.Repeat("a", 250_001), "user_id", "conform"), "INVALID_REQUEST"},
				} {
					a := p.post(p.id(), tc[1])
					p.want(a.status == http.StatusBadRequest && a.code() == tc[2], "%s answers %s", tc[0], a)
				}
			},
		},
		{
			name: "errors/fishmem-shape", promise: "An error is flat: code, message and the request_id of the header", point: "FishMem 3",
			needs: fm, calls: 1, run: func(p *probe) {
				a := p.look("task_" + p.s.run)
				id := a.header.Get("X-Request-ID")
				p.want(a.text("code") != "" && a.text("message") != "" && a.text("request_id") == id, "an error is %s, its X-Request-ID %q", a, id)
			},
		},
		{
			name: "errors/fishmem-not-found", promise: "What is not there is 404 with the code of its kind", point: "FishMem 3",
			needs: fm, calls: 4, run: func(p *probe) {
				id := "conform_" + p.s.run
				for _, tc := range [][3]string{
					{http.MethodGet, "/v1/events/" + id, "EVENT_NOT_FOUND"},
					{http.MethodGet, "/v1/memories/" + id, "MEMORY_NOT_FOUND"},
					{http.MethodGet, "/v1/operations/" + id, "OPERATION_NOT_FOUND"},
					{http.MethodPost, "/v1/operations/" + id + "/retry", "OPERATION_NOT_RETRYABLE"},
				} {
					a := p.fm(tc[0], tc[1], "", "")
					p.want(a.status == http.StatusNotFound && a.code() == tc[2], "%s %s answers %s", tc[0], tc[1], a)
				}
			},
		},
		{
			name: "errors/fishmem-rate", promise: "A full rate window is 429 RATE_LIMITED, says when to come back, and leaves the key free", point: "FishMem 1.2, 1.3, 3",
			needs: []need{needFishMem, needFaults}, calls: 3, credits: 2, run: func(p *probe) {
				user, key := p.fishMemUser(), p.id()
				p.fault(fault{Kind: "status", Code: http.StatusTooManyRequests, RetryAfter: "60", Key: key})
				r := request{method: http.MethodPost, path: "/v1/memories", body: inferBody(user, textReleases), header: map[string]string{"Idempotency-Key": key}, once: true}
				a := p.do(p.s.fishMem, r)
				p.want(a.status == http.StatusTooManyRequests && a.code() == "RATE_LIMITED" && a.header.Get("Retry-After") == "60", "a full rate window answers %s with Retry-After %q", a, a.header.Get("Retry-After"))
				p.ended(p.event(p.do(p.s.fishMem, r)))
			},
		},
	}
}
