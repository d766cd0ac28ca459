package model_test

import (
	"fmt"
	"slices"
	"strings"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/memwrite/memwrite-go/internal/model"
)

// submit sends a command and gives what the model makes of it. Writes are made
// at different times, so that lists have one order.
func (m *machine) submit(rt *rapid.T, c model.Command, fails []string, send func() *reply) (*reply, model.Answer) {
	m.Tick(rt)
	want := m.model.Submit(c, fails)
	if want.Made && c.Kind != model.Verbatim {
		key := c.Name
		if c.Kind == model.Turn {
			key = c.Text
		}
		m.arm(key, want.Write)
	}
	m.model.Settle()
	got := send()
	m.disarm()
	return got, want
}

func (m *machine) Infer(rt *rapid.T) {
	c := model.Command{Kind: model.Infer, User: user(rt), Name: name(rt), Text: text(rt)}
	c.Facts = facts(c.Text)
	got, want := m.submit(rt, c, m.fails(rt), func() *reply {
		return m.call(rt, "POST", "/v1/memories", "", c.Name, fmt.Sprintf(`{"content":%q,"user_id":%q}`, c.Text, c.User))
	})
	if !m.expect(rt, got, want, 202) {
		return
	}
	m.event(rt, got.text("event_id"), want.Write)
	status := want.Write.State
	if want.Made {
		status = model.Pending // it is answered before it is begun
	}
	if got.text("status") != status {
		rt.Fatalf("status %s, predicted %s", got.text("status"), status)
	}
}

func (m *machine) Verbatim(rt *rapid.T) {
	c := model.Command{Kind: model.Verbatim, User: user(rt), Name: name(rt), Text: text(rt)}
	got, want := m.submit(rt, c, nil, func() *reply {
		return m.call(rt, "POST", "/v1/memories", "", c.Name, fmt.Sprintf(`{"infer":false,"content":%q,"user_id":%q}`, c.Text, c.User))
	})
	if m.expect(rt, got, want, 200) {
		m.results(rt, got.fields["results"], want.Write)
	}
}

func (m *machine) Add(rt *rapid.T) {
	c := model.Command{Kind: model.Add, User: user(rt), Name: "ref-" + name(rt), Text: text(rt)}
	c.Facts = facts(c.Text)
	got, want := m.submit(rt, c, m.fails(rt), func() *reply {
		return m.call(rt, "POST", "/memory/add", c.User, "", fmt.Sprintf(`{"text":%q,"client_ref":%q}`, c.Text, c.Name))
	})
	if want.Code == "" && want.Write.State == model.Failed {
		if got.status != 500 || !strings.Contains(string(got.body), "EXTRACTION_FAILED") {
			rt.Fatalf("answered %d %s, predicted a failure", got.status, got.body)
		}
		return
	}
	good := 201
	if want.Replayed || want.Code == model.Dropped || (want.Write != nil && len(want.Write.Records) == 0) {
		good = 200
	}
	if !m.expect(rt, got, want, good) {
		if want.Code == model.Dropped && got.text("status") != "ok" {
			rt.Fatalf("a dropped write is answered %s", got.body)
		}
		return
	}
	w := want.Write
	switch {
	case want.Replayed:
		ids, _ := got.fields["memory_ids"].([]any)
		if got.text("reason") != "already_ingested" || len(ids) != len(w.Records) {
			rt.Fatalf("a replay is answered %s, predicted %d memories", got.body, len(w.Records))
		}
		for i, id := range ids {
			m.record(rt, fmt.Sprint(id), w.Records[i])
		}
	case len(w.Records) == 0:
		if got.text("reason") != "no_high_value_content" {
			rt.Fatalf("an input without a fact is answered %s", got.body)
		}
	default:
		m.record(rt, fmt.Sprint(got.fields["id"]), w.Records[0])
		if got.text("text") != w.Records[0].Text {
			rt.Fatalf("memory %q, predicted %q", got.text("text"), w.Records[0].Text)
		}
	}
}

func (m *machine) Turn(rt *rapid.T) {
	c := model.Command{
		Kind: model.Turn, User: user(rt), Text: text(rt), Speaker: rapid.SampledFrom([]string{"", "ann", "bob"}).Draw(rt, "speaker"),
		At: rapid.SampledFrom([]string{"2026-06-16T09:30:00Z", "2026-06-16T09:30:00.000Z"}).Draw(rt, "at"),
	}
	c.Facts = facts(c.Text)
	got, want := m.submit(rt, c, nil, func() *reply {
		return m.call(rt, "POST", "/v1/memory/add_turn", "", "", fmt.Sprintf(`{"tenant_id":%q,"user_id":%q,"role":"user","speaker":%q,"text":%q,"occurred_at":%q}`,
			m.srv.Workspace, c.User, c.Speaker, c.Text, c.At))
	})
	m.expect(rt, got, want, 201)
	status := "distilling"
	switch {
	case want.Code == model.Refused:
		return
	case want.Code == model.Dropped:
		status = "skipped"
	case want.Replayed:
		status = "skipped_replay"
	}
	if got.text("processing_status") != status {
		rt.Fatalf("answered %s, predicted %s", got.body, status)
	}
}

func (m *machine) Redrive(rt *rapid.T) {
	if len(m.events) == 0 {
		rt.Skip()
	}
	id := rapid.SampledFrom(ids(m.events)).Draw(rt, "event")
	w := m.events[id]
	again := w.State != model.Succeeded
	want := m.model.Redrive(w)
	got := m.call(rt, "POST", "/v1/operations/"+id+"/retry", "", "", "")
	if m.expect(rt, got, want, 202) && again && got.text("status") != "pending" {
		rt.Fatalf("a redriven event is %s", got.body)
	}
	m.model.Settle()
	synctest.Wait()
}

func (m *machine) Unknown(rt *rapid.T) {
	path := rapid.SampledFrom([]string{"GET /v1/events/%s", "GET /v1/operations/%s", "POST /v1/operations/%s/retry", "DELETE /v1/memories/%s", "GET /v1/memories/%s"}).Draw(rt, "path")
	method, path, _ := strings.Cut(path, " ")
	if got := m.call(rt, method, fmt.Sprintf(path, "task_00000000000000000000000000000000"), "", "", ""); got.status != 404 {
		rt.Fatalf("%s %s: %d %s", method, path, got.status, got.body)
	}
}

func (m *machine) Refused(rt *rapid.T) {
	for _, c := range []struct {
		path, user, key, body string
		status                int
		code                  string
	}{
		{"/v1/memories", "", "", `{"content":"likes: tea","user_id":"sam"}`, 400, "IDEMPOTENCY_KEY_REQUIRED"},
		{"/v1/memories", "", "n1", `{"content":" ","user_id":"sam"}`, 400, "INVALID_REQUEST"},
		{"/v1/memories", "", "n1", `{"content":"likes: tea"}`, 400, "INVALID_REQUEST"},
		{"/v1/memories", "", "n1", `[]`, 400, "INVALID_BODY"},
		{"/memory/add", "", "", `{"text":"likes: tea and more"}`, 400, "MISSING_END_USER_ID"},
		{"/memory/add", "sam", "", `{"text":"likes: tea","client_ref":""}`, 422, "VALIDATION_ERROR"},
		{"/v1/memory/add_turn", "", "", `{"tenant_id":"another","user_id":"sam","text":"likes: tea"}`, 403, "Tenant"},
	} {
		if got := m.call(rt, "POST", c.path, c.user, c.key, c.body); got.status != c.status || !strings.Contains(string(got.body), c.code) {
			rt.Fatalf("%s %s: %d %s, predicted %d %s", c.path, c.body, got.status, got.body, c.status, c.code)
		}
	}
}

func ids[T any](m map[string]T) []string {
	out := make([]string, 0, len(m))
	for id := range m {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

// known is the ids of one wire's records.
func (m *machine) known(numbers bool) []string {
	return slices.DeleteFunc(ids(m.memory), func(id string) bool { return strings.Contains(id, "-") == numbers })
}

func (m *machine) Forget(rt *rapid.T) {
	list := m.known(true)
	if len(list) == 0 {
		rt.Skip()
	}
	id := rapid.SampledFrom(list).Draw(rt, "memory")
	r := m.memory[id]
	got := m.call(rt, "DELETE", "/memory/forget", r.User, "", fmt.Sprintf(`{"memory_ids":[%s]}`, id))
	if want := m.model.Forget(r); got.status != 200 || got.fields["deleted"] != float64(want) {
		rt.Fatalf("forget answers %d %s, predicted %d", got.status, got.body, want)
	}
}

func (m *machine) Delete(rt *rapid.T) {
	list := m.known(false)
	if len(list) == 0 {
		rt.Skip()
	}
	id := rapid.SampledFrom(list).Draw(rt, "memory")
	c := model.Command{Kind: model.Delete, Name: rapid.SampledFrom([]string{"", "n1", "d1", "d2"}).Draw(rt, "key"), Target: m.memory[id]}
	want := m.model.Submit(c, nil)
	m.expect(rt, m.call(rt, "DELETE", "/v1/memories/"+id, "", c.Name, ""), want, 200)
}

// Check reads everything there is and holds it against the model.
func (m *machine) Check(rt *rapid.T) {
	m.checkEvents(rt)
	m.checkUsage(rt)
	for _, u := range []string{"sam", "kim"} {
		got := m.call(rt, "GET", "/v1/memories?limit=100&user_id="+u, "", "", "")
		var have, want []string
		for _, item := range got.fields["results"].([]any) {
			have = append(have, fmt.Sprint(item.(map[string]any)["memory"]))
		}
		for _, r := range m.model.Records {
			if r.User == u && !r.Forgotten && (r.Write.Kind == model.Infer || r.Write.Kind == model.Verbatim) {
				want = append(want, r.Text)
			}
		}
		slices.Sort(have)
		slices.Sort(want)
		if !slices.Equal(have, want) {
			rt.Fatalf("%s has %q, predicted %q", u, have, want)
		}
	}
}

// checkEvents walks over all pages and reads each event on its own.
func (m *machine) checkEvents(rt *rapid.T) {
	state := rapid.SampledFrom([]string{"", model.Succeeded, model.Failed, model.Retrying}).Draw(rt, "state")
	var have []string
	for cursor := ""; ; {
		path := fmt.Sprintf("/v1/events?limit=%d", rapid.IntRange(1, 4).Draw(rt, "limit"))
		if state != "" {
			path += "&status=" + state
		}
		if cursor != "" {
			path += "&cursor=" + cursor
		}
		got := m.call(rt, "GET", path, "", "", "")
		for _, item := range got.fields["results"].([]any) {
			have = append(have, fmt.Sprint(item.(map[string]any)["id"]))
		}
		if cursor = got.text("next_cursor"); cursor == "" {
			break
		}
	}
	var want []string
	for _, w := range m.model.Events(state) {
		want = append(want, m.ids[w])
	}
	if !slices.Equal(have, want) {
		rt.Fatalf("events %q, predicted %q", have, want)
	}
	for id, w := range m.events {
		got := m.call(rt, "GET", "/v1/events/"+id, "", "", "")
		if got.text("status") != w.State || got.fields["attempts"] != float64(w.Attempts) || got.text("error_code") != w.Code {
			rt.Fatalf("event %s, predicted %s after %d attempts, %q", got.body, w.State, w.Attempts, w.Code)
		}
		if w.State == model.Succeeded {
			m.results(rt, got.fields["results"], w)
		}
	}
}

func (m *machine) checkUsage(rt *rapid.T) {
	got := m.call(rt, "GET", "/v1/usage", "", "", "")
	for unit, want := range map[string]*model.Account{"credits": m.model.Credits(), "adds": m.model.Adds()} {
		have := got.fields[unit].(map[string]any)
		for field, n := range map[string]int64{"reserved": want.Reserved, "settled": want.Settled, "released": want.Released} {
			if have[field] != float64(n) {
				rt.Fatalf("%s %s is %v, predicted %d", unit, field, have[field], n)
			}
		}
		if have["available"] != nil && have["available"] != float64(want.Available) {
			rt.Fatalf("%s available is %v, predicted %d", unit, have["available"], want.Available)
		}
	}
	if got.fields["balanced"] != true {
		rt.Fatalf("the ledger does not balance: %s", got.body)
	}
}
