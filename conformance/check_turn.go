package conformance

import (
	"net/http"
	"strings"
	"time"
)

const (
	turnTime  = "2026-07-31T09:00:00Z"
	turnAgain = "2026-07-31T09:00:00+00:00" // the same instant, spelled otherwise
	speaker   = "user@conform"
)

func processing(a answer) string { return a.text("processing_status") }

func accepted(a answer) bool {
	return a.ok() && (processing(a) == "distilling" || processing(a) == "completed")
}

func turnChecks() []*check {
	ms := []need{needMemorySync}
	faults := []need{needMemorySync, needFaults}
	return []*check{
		{
			name: "turn/first", promise: "A turn is answered with a receipt that claims no memory, and its facts appear", point: "MemorySync 1.4, 2.2",
			needs: ms, calls: 3, adds: 1, run: func(p *probe) {
				user := p.memorySyncUser()
				a := p.turn(user, "user", speaker, turnTime, textReleases)
				exists, _ := a.fields["already_exists"].(bool)
				p.want(accepted(a) && !exists, "a turn answers %s", a)
				id, has := a.fields["memory_id"]
				p.want(has && id == nil, "the receipt of a turn names the memory %v", id)
				p.want(processing(a) != "distilling" || a.text("request_id") != "", "the receipt of a turn has no request_id: %s", a)
				p.settles(user, 1)
			},
		},
		{
			name: "turn/repeat", promise: "The same turn again is skipped_replay and stores nothing", point: "MemorySync 4.2",
			needs: ms, calls: 5, adds: 1, run: func(p *probe) {
				user := p.memorySyncUser()
				p.want(accepted(p.turn(user, "user", speaker, turnTime, textReleases)), "a turn is not accepted")
				p.settles(user, 1)
				a := p.turn(user, "user", speaker, turnTime, textReleases)
				exists, _ := a.fields["already_exists"].(bool)
				p.want(a.ok() && processing(a) == "skipped_replay" && exists, "the same turn again answers %s", a)
				n := p.stored(user)
				p.want(n == 1, "a turn and its repeat stored %d memories", n)
			},
		},
		{
			name: "turn/key", promise: "Another speaker or another spelling of the time is another turn", point: "MemorySync 4.2",
			needs: ms, calls: 10, adds: 3, run: func(p *probe) {
				user := p.memorySyncUser()
				for _, t := range [][2]string{{speaker, turnTime}, {"other@conform", turnTime}, {speaker, turnAgain}} {
					a := p.turn(user, "user", t[0], t[1], textReleases)
					p.want(accepted(a), "a turn of speaker %q at %q, which was not sent before, answers %s", t[0], t[1], a)
					p.settles(user, 1)
					p.forgetAll(user)
				}
			},
		},
		{
			name: "turn/window", promise: "A turn is recognised for 30 days and not longer", point: "MemorySync 4.2",
			needs: faults, calls: 7, adds: 2, run: func(p *probe) {
				user := p.memorySyncUser()
				text := "My team ships releases every " + p.id() + "."
				p.want(accepted(p.turn(user, "user", speaker, turnTime, text)), "a turn is not accepted")
				p.settles(user, 1)
				p.fault(fault{Kind: "late_arrival", Key: text, Delay: 30*24*time.Hour - time.Hour})
				a := p.turn(user, "user", speaker, turnTime, text)
				p.want(processing(a) == "skipped_replay", "the same turn an hour before the 30 days are over answers %s", a)
				p.forgetAll(user)
				p.fault(fault{Kind: "late_arrival", Key: text, Delay: 30*24*time.Hour + time.Hour})
				a = p.turn(user, "user", speaker, turnTime, text)
				p.want(accepted(a), "the same turn after 30 days answers %s", a)
				p.settles(user, 1)
			},
		},
		{
			name: "turn/non-user", promise: "A turn that is not the user's is skipped, every time, and leaves no receipt", point: "MemorySync 2.2",
			needs: ms, calls: 3, adds: 2, run: func(p *probe) {
				user := p.memorySyncUser()
				for range 2 {
					a := p.turn(user, "assistant", "bot@conform", turnTime, textReleases)
					p.want(a.ok() && processing(a) == "skipped_non_user_turn", "an assistant's turn answers %s", a)
				}
			},
		},
		{
			name: "turn/low-value", promise: "A turn of filler is skipped", point: "MemorySync 2.2",
			needs: ms, calls: 2, adds: 1, run: func(p *probe) {
				a := p.turn(p.memorySyncUser(), "user", speaker, turnTime, textFiller)
				p.want(a.ok() && processing(a) == "skipped_low_value", "a turn of filler answers %s", a)
			},
		},
		{
			name: "turn/failed", promise: "A turn that failed in the background frees its replay key", point: "MemorySync 2.2, 4.2",
			needs: faults, calls: 4, adds: 1, run: func(p *probe) {
				user := p.memorySyncUser()
				text := "My team ships releases every " + p.id() + "."
				p.fault(fault{Kind: "provider_invalid", Key: text})
				a := p.turn(user, "user", speaker, turnTime, text)
				p.want(a.status >= 500 || processing(a) == "failed" || accepted(a), "a turn whose extraction will fail answers %s", a)
				body := p.turnBody(user, "user", speaker, turnTime, text)
				again := request{method: http.MethodPost, path: "/v1/memory/add_turn", body: body, poll: true}
				for gap := 20 * time.Millisecond; ; gap = min(gap*2, time.Second) {
					p.nap(gap)
					a = p.do(p.s.memorySync, again)
					if accepted(a) {
						break
					}
					p.want(p.waiting(), "a turn that failed still answers %s when it is sent again", a)
				}
				p.settles(user, 1)
			},
		},
		{
			name: "turn/quota", promise: "A turn over the monthly quota says skipped, and is accepted when there is quota again", point: "MemorySync 2.2",
			needs: faults, calls: 4, adds: 1, run: func(p *probe) {
				user := p.memorySyncUser()
				text := strings.TrimSuffix(textReleases, "Thursday.") + p.id() + "."
				p.fault(fault{Kind: "exhaust_quota", Key: text})
				a := p.turn(user, "user", speaker, turnTime, text)
				silent := a.ok() && processing(a) == "skipped"
				strict := a.status == http.StatusTooManyRequests && a.code() == "limit_exceeded"
				p.want(silent || strict, "with the month used up a turn answers %s", a)
				a = p.turn(user, "user", speaker, turnTime, text)
				p.want(accepted(a), "after the quota was refilled the same turn answers %s", a)
				p.settles(user, 1)
			},
		},
	}
}
