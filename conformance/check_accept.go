package conformance

import (
	"net/http"
	"strings"
)

// post sends a write to FishMem.
func (p *probe) post(key, body string) answer {
	return p.fm(http.MethodPost, "/v1/memories", key, body)
}

func acceptChecks() []*check {
	fm := []need{needFishMem}
	faults := []need{needFishMem, needFaults}
	return []*check{
		{
			name: "accept/receipt", promise: "An inferred write is answered 202 with a receipt: an event and its status", point: "FishMem 1.4",
			needs: fm, calls: 2, credits: 2, run: func(p *probe) {
				a := p.post(p.id(), inferBody(p.fishMemUser(), textReleases))
				id := p.event(a)
				p.want(a.status == http.StatusAccepted, "an inferred write answers %d, not 202", a.status)
				switch a.text("status") {
				case "PENDING", "RUNNING", "RETRYING", "SUCCEEDED", "FAILED":
				default:
					p.fail("the receipt's status is %q", a.text("status"))
				}
				p.ended(id)
			},
		},
		{
			name: "accept/repeat", promise: "The same key and command after success give the same event, as it stands, and run nothing", point: "FishMem 4.2",
			needs: fm, calls: 6, credits: 2, run: func(p *probe) {
				user, key := p.fishMemUser(), p.id()
				id := p.infer(user, key, textReleases)
				before := p.succeeded(id)
				n := p.memories(user)
				a := p.post(key, inferBody(user, textReleases))
				p.want(p.event(a) == id, "the repeat names event %s, the first call %s", a.text("event_id"), id)
				p.want(a.text("status") == "SUCCEEDED", "the repeat of a write that SUCCEEDED says %q", a.text("status"))
				after := p.look(id)
				p.want(after.fields["attempts"] == before.fields["attempts"] && after.text("completed_at") == before.text("completed_at"), "the repeat changed the event: %s", after)
				m := p.memories(user)
				p.want(m == n, "%d memories after the first call, %d after the repeat", n, m)
			},
		},
		{
			name: "accept/same-meaning", promise: "Key order, white space, defaults and unknown fields do not make another command", point: "FishMem 4.1",
			needs: fm, calls: 5, credits: 2, run: func(p *probe) {
				user, key := p.fishMemUser(), p.id()
				id := p.event(p.post(key, `{"user_id":"`+user+`","content":"`+textReleases+`","metadata":{"a":1,"b":"two"}}`))
				for _, body := range []string{
					`{"metadata":{"b":"two","a":1},"content":"` + textReleases + `","user_id":"` + user + `"}`,
					"{ \"user_id\" : \" " + user + " \",\n\"content\":\"" + textReleases + "\", \"infer\": true, \"metadata\":{ \"a\" : 1 , \"b\":\"two\"} }",
					`{"user_id":"` + user + `","content":"` + textReleases + `","metadata":{"a":1,"b":"two"},"conform_unknown":{"x":[1]}}`,
				} {
					a := p.post(key, body)
					p.want(a.ok() && a.text("event_id") == id, "the same command in other words answers %s", a)
				}
				p.ended(id)
			},
		},
		{
			name: "accept/spelling", promise: "White space in the content, the spelling of a time and every digit of a number are part of the command", point: "FishMem 4.1",
			known: "to be expected of the live service, whose language reads numbers as floating point: digits above 2^53 do not count there",
			needs: fm, calls: 5, credits: 2, run: func(p *probe) {
				user, key := p.fishMemUser(), p.id()
				body := func(content, date, number string) string {
					return `{"user_id":"` + user + `","content":"` + content + `","event_date":"` + date + `","metadata":{"n":` + number + `}}`
				}
				const date, number = "2026-07-31T00:00:00Z", "12345678901234567890"
				id := p.event(p.post(key, body(textReleases, date, number)))
				for _, other := range []string{
					body(textReleases+" ", date, number),
					body(textReleases, "2026-07-31T00:00:00.000Z", number),
					body(textReleases, date, "12345678901234567891"),
				} {
					a := p.post(key, other)
					p.want(a.status == http.StatusConflict, "a command that differs in spelling alone answers %s", a)
				}
				p.ended(id)
			},
		},
		{
			name: "accept/conflict", promise: "Another command under a used key is 409 IDEMPOTENCY_CONFLICT and has no effect", point: "FishMem 3, 4.2",
			needs: fm, calls: 6, credits: 2, run: func(p *probe) {
				user, other, key := p.fishMemUser(), p.fishMemUser(), p.id()
				id := p.infer(user, key, textReleases)
				p.succeeded(id)
				a := p.post(key, inferBody(other, textOffice))
				p.want(a.status == http.StatusConflict && a.code() == "IDEMPOTENCY_CONFLICT", "another command under a used key answers %s", a)
				n := p.memories(other)
				p.want(n == 0, "the refused command stored %d memories", n)
				a = p.post(key, inferBody(user, textReleases))
				p.want(p.event(a) == id, "after a conflict the original command names event %s", a.text("event_id"))
			},
		},
		{
			name: "accept/mode", promise: "infer true and false are one operation: changing the mode under a used key is a conflict at once", point: "FishMem 4.6",
			known: "known of the live service: it answers 202, and the write ends FAILED later",
			needs: fm, calls: 4, credits: 2, run: func(p *probe) {
				user, other, key := p.fishMemUser(), p.fishMemUser(), p.id()
				p.ended(p.infer(user, key, textReleases))
				a := p.post(key, object("user_id", other, "content", textReleases, "infer", false))
				p.want(a.status == http.StatusConflict, "a verbatim write under the key of an inferred one answers %s", a)
			},
		},
		{
			name: "accept/concurrent", promise: "Simultaneous first calls under one key get one event", point: "FishMem 4.2",
			needs: fm, calls: 10, credits: 2, run: func(p *probe) {
				user, key := p.fishMemUser(), p.id()
				got := p.together(8, func(int) answer { return p.post(key, inferBody(user, textReleases)) })
				id := p.event(got[0])
				for _, a := range got {
					p.want(p.event(a) == id, "eight simultaneous calls under one key got the events %s and %s", id, a.text("event_id"))
				}
				p.ended(id)
				n := p.memories(user)
				p.want(n == 1, "eight simultaneous calls under one key stored %d memories", n)
			},
		},
		{
			name: "accept/other-key", promise: "The same text under another key is another intent", point: "FishMem 1.3",
			needs: fm, calls: 3, credits: 4, run: func(p *probe) {
				user := p.fishMemUser()
				one, two := p.infer(user, p.id(), textReleases), p.infer(user, p.id(), textReleases)
				p.want(one != two, "two keys got one event")
				p.ended(one)
				p.ended(two)
			},
		},
		{
			name: "accept/key-rules", promise: "A key is needed, 1 to 200 characters, and says so in its codes", point: "FishMem 1.3",
			needs: fm, calls: 5, credits: 2, run: func(p *probe) {
				user := p.fishMemUser()
				body := inferBody(user, textReleases)
				a := p.post("", body)
				p.want(a.status == http.StatusBadRequest && a.code() == "IDEMPOTENCY_KEY_REQUIRED", "an inferred write without a key answers %s", a)
				for _, key := range []string{" ", strings.Repeat("k", 201)} {
					a = p.post(key, body)
					p.want(a.status == http.StatusBadRequest && a.code() == "INVALID_IDEMPOTENCY_KEY", "a key of %d characters, blank or too long, answers %s", len(key), a)
				}
				key := p.id()
				id := p.event(p.post(key+strings.Repeat("k", 200-len(key)), body))
				p.ended(id)
			},
		},
		{
			name: "accept/refused", promise: "A refused request leaves its key free", point: "FishMem 1.3",
			needs: fm, calls: 3, credits: 2, run: func(p *probe) {
				user, key := p.fishMemUser(), p.id()
				p.post(key, object("user_id", user))
				a := p.post(key, inferBody(user, textReleases))
				p.want(a.ok(), "after a refusal the same key answers %s", a)
				p.ended(p.event(a))
			},
		},
		{
			name: "accept/credits", promise: "Without credits a write is 402 INSUFFICIENT_CREDITS and leaves its key free", point: "FishMem 4.7",
			needs: faults, calls: 3, credits: 2, run: func(p *probe) {
				user, key := p.fishMemUser(), p.id()
				p.fault(fault{Kind: "exhaust_credits", Key: key})
				a := p.post(key, inferBody(user, textReleases))
				p.want(a.status == http.StatusPaymentRequired && a.code() == "INSUFFICIENT_CREDITS", "a write without credits answers %s", a)
				a = p.post(key, inferBody(user, textReleases))
				p.want(a.ok(), "after a top-up the same key answers %s", a)
				p.ended(p.event(a))
			},
		},
		{
			name: "accept/lost-answer", promise: "A write whose answer was lost runs once, and its repeat gives the receipt", point: "FishMem 4.2",
			needs: faults, calls: 4, credits: 2, run: func(p *probe) {
				user, key := p.fishMemUser(), p.id()
				p.fault(fault{Kind: "drop_response", Key: key})
				lost := p.post(key, inferBody(user, textReleases))
				p.want(lost.err != nil, "the answer that should be lost came: %s", lost)
				p.succeeded(p.event(p.post(key, inferBody(user, textReleases))))
				n := p.memories(user)
				p.want(n == 1, "a lost answer and its repeat stored %d memories", n)
			},
		},
	}
}

func verbatimChecks() []*check {
	return []*check{
		{
			name: "verbatim/repeat", promise: "A verbatim write answers with its records, and its repeat with the same ones", point: "FishMem 1.4, 4.2",
			needs: []need{needFishMem}, calls: 4, credits: 1, run: func(p *probe) {
				user, key := p.fishMemUser(), p.id()
				body := object("user_id", user, "content", textReleases, "infer", false)
				first, again := p.post(key, body), p.post(key, body)
				ids := resultIDs(first)
				p.want(first.status == http.StatusOK && len(ids) == 1, "a verbatim write answers %s", first)
				same := resultIDs(again)
				p.want(again.status == http.StatusOK && len(same) == 1 && same[0] == ids[0], "its repeat answers %s, the first call %s", again, first)
				n := p.memories(user)
				p.want(n == 1, "a verbatim write and its repeat stored %d memories", n)
			},
		},
		{
			name: "verbatim/exact", promise: "A verbatim write is stored as it was given, one record a message", point: "FishMem 1.4",
			needs: []need{needFishMem}, calls: 3, credits: 1, run: func(p *probe) {
				user := p.fishMemUser()
				const one, two = "  Kept as it is:  spaces,\nlines, ünïcode. ", "And the second one."
				a := p.post(p.id(), object("user_id", user, "infer", false, "messages", []any{
					map[string]string{"role": "user", "content": one}, map[string]string{"role": "assistant", "content": two},
				}))
				p.want(a.status == http.StatusOK && len(resultIDs(a)) == 2, "a verbatim write of two messages answers %s", a)
				texts := map[string]bool{}
				for _, r := range a.list("results") {
					fields, _ := r.(map[string]any)
					text, _ := fields["memory"].(string)
					texts[text] = true
				}
				p.want(texts[one] && texts[two], "the records hold other texts than were given: %s", a)
				n := p.memories(user)
				p.want(n == 2, "a verbatim write of two messages stored %d memories", n)
			},
		},
	}
}

// resultIDs are the ids in the results of a write or an event.
func resultIDs(a answer) []string {
	var out []string
	for _, r := range a.list("results") {
		fields, _ := r.(map[string]any)
		id, _ := fields["id"].(string)
		out = append(out, id)
	}
	return out
}
