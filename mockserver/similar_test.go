package mockserver_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/memwrite/memwrite-go/mockserver"
)

// keeps adds a text and gives the number and the words of what is kept of it.
func (c *caller) keeps(text string, header ...string) (number float64, words string) {
	c.t.Helper()
	got := c.want(c.do("POST", "/memory/add", fmt.Sprintf(`{"text":%q}`, text), header...), 201, "").fields()
	return got["id"].(float64), got["text"].(string)
}

// known is what search finds of the end user, sorted.
func (c *caller) known(query string) []string {
	c.t.Helper()
	var out []string
	for _, r := range c.want(c.do("POST", "/memory/query", fmt.Sprintf(`{"query":%q,"k":20}`, query)), 200, "").fields()["memories"].([]any) {
		out = append(out, r.(map[string]any)["text"].(string))
	}
	slices.Sort(out)
	return out
}

// city is an extractor that knows one city of everybody, and any number of
// hobbies.
func city(text string) ([]mockserver.Fact, bool) {
	f := mockserver.Fact{Text: text, Key: "self/hobby"}
	if strings.Contains(text, "live") {
		f = mockserver.Fact{Text: text, Key: "self/city", Replaces: true}
	}
	return []mockserver.Fact{f}, true
}

func TestANewFactTakesThePlaceOfTheOldOne(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	srv.SetScript(city)
	old, _ := c.keeps("I live in Lisbon")
	hobby, _ := c.keeps("I collect stamps of Lisbon")
	other, _ := c.keeps("I live in Lisbon", "X-End-User-ID", "globex")
	now, words := c.keeps("I live in Porto")
	if words != "I live in Porto" || now == old {
		t.Fatalf("%v %q", now, words)
	}
	// The old one is nowhere; what is of another key or another user stays.
	c.want(c.do("GET", fmt.Sprintf("/memory/%.0f", old), ""), 404, "")
	for _, n := range []float64{hobby, now} {
		c.want(c.do("GET", fmt.Sprintf("/memory/%.0f", n), ""), 200, "")
	}
	c.want(c.do("GET", fmt.Sprintf("/memory/%.0f", other), "", "X-End-User-ID", "globex"), 200, "")
	if got := c.known("live Lisbon Porto"); fmt.Sprint(got) != "[I collect stamps of Lisbon I live in Porto]" {
		t.Errorf("search finds %q", got)
	}
	// Saying it again is a repeat, and going back to the first is a new fact.
	if again, _ := c.keeps("I live in Porto"); again != now {
		t.Errorf("a repeat is %v, want %v", again, now)
	}
	back, _ := c.keeps("I live in Lisbon")
	if back == old || back == now {
		t.Errorf("back in Lisbon is %v", back)
	}
	c.want(c.do("GET", fmt.Sprintf("/memory/%.0f", now), ""), 404, "")
	c.sound()
}

// Without the filter facts stand beside each other, equal ones and contrary
// ones.
func TestWithoutTheFilterNothingIsComparedAndNothingReplaced(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	srv.SetScript(city)
	for _, text := range []string{"I live in Lisbon", "I live in Lisbon", "I live in Porto"} {
		c.want(c.do("POST", "/memory/add", fmt.Sprintf(`{"text":%q,"deduplicate":false}`, text)), 201, "")
	}
	if got := c.known("live"); fmt.Sprint(got) != "[I live in Lisbon I live in Lisbon I live in Porto]" {
		t.Errorf("kept %q", got)
	}
	c.sound()
}

// The server's own rules know that everybody has one name, and of nothing else
// that there can be only one.
func TestTheRulesReplaceANameAndNothingElse(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	for _, text := range []string{"My name is Sam.", "I like green tea.", "I like black coffee.", "My name is Alex.", "My dog is named Rex."} {
		c.keeps(text)
	}
	want := "[Dog is named Rex Like black coffee Like green tea Name is Alex]"
	if got := c.known("name dog tea coffee like"); fmt.Sprint(got) != want {
		t.Errorf("kept %q, want %s", got, want)
	}
}

// Turns go through the same filter, and a plan that was frozen supersedes once,
// whatever becomes of its runner.
func TestSupersedingSurvivesCrashes(t *testing.T) {
	t.Parallel()
	for _, point := range []mockserver.Point{mockserver.AfterInference, mockserver.AfterPlan, mockserver.AfterCommit, mockserver.BeforeFinish} {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			srv := mockserver.Run(t)
			c := newCaller(t, srv)
			srv.SetScript(city)
			c.keeps("I live in Lisbon")
			died := srv.Arm(mockserver.Fault{Kind: mockserver.KillRunner, Point: point, Times: 2})
			turn := fmt.Sprintf(`{"tenant_id":%q,"user_id":"acme","role":"user","text":"I live in Porto"}`, srv.Workspace)
			c.want(c.do("POST", "/v1/memory/add_turn", turn), 201, "")
			c.struck(died, 2)
			for srv.Ledger().Open != 0 {
				c.do("GET", "/health", "")
			}
			if got := c.known("live"); fmt.Sprint(got) != "[I live in Porto]" {
				t.Errorf("kept %q", got)
			}
			c.sound()
		})
	}
}

// What was superseded before its runner came to commit is forgotten already,
// and stays so.
func TestSupersedingWhatWasForgottenMeanwhile(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t, mockserver.RealTimes())
	c := newCaller(t, srv)
	srv.SetScript(city)
	old, _ := c.keeps("I live in Lisbon")
	held := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Point: mockserver.AfterPlan})
	turn := fmt.Sprintf(`{"tenant_id":%q,"user_id":"acme","role":"user","text":"I live in Porto"}`, srv.Workspace)
	c.want(c.do("POST", "/v1/memory/add_turn", turn), 201, "")
	c.struck(held, 1)
	forget := fmt.Sprintf(`{"memory_ids":[%.0f]}`, old)
	if got := c.want(c.do("DELETE", "/memory/forget", forget), 200, "").fields(); got["deleted"] != 1.0 {
		t.Fatalf("forgotten: %v", got)
	}
	held.Release()
	for srv.Ledger().Open != 0 {
		c.do("GET", "/health", "")
	}
	if got := c.want(c.do("DELETE", "/memory/forget", forget), 200, "").fields(); got["deleted"] != 0.0 {
		t.Errorf("forgotten again: %v", got)
	}
	if got := c.known("live"); fmt.Sprint(got) != "[I live in Porto]" {
		t.Errorf("kept %q", got)
	}
	c.sound()
}

// The comparison is the caller's own.
func TestTheComparisonIsPluggable(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	srv.SetScript(func(text string) ([]mockserver.Fact, bool) {
		return []mockserver.Fact{{Text: text, Key: text[:4]}}, true
	})
	first, _ := c.keeps("tea: green, in the morning")
	if second, _ := c.keeps("tea: black, in the evening"); second == first {
		t.Error("two teas are one by the server's own comparison")
	}
	srv.SetSame(func(a, b string) bool { return a[:4] == b[:4] })
	if third, words := c.keeps("tea: white, now and then"); third != first || words != "tea: green, in the morning" {
		t.Errorf("kept %v %q, want the first one", third, words)
	}
	other, _ := c.keeps("tea: white, now and then", "X-End-User-ID", "globex")
	if other == first {
		t.Error("another user's fact was compared")
	}
	if cup, _ := c.keeps("cup: a blue one"); cup == first {
		t.Error("a fact of another key was compared")
	}
	c.sound()
}

// On FishMem each key is an intent of its own: nothing is compared.
func TestFishMemComparesNothing(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	srv.SetScript(city)
	for i, text := range []string{"I live in Lisbon", "I live in Lisbon", "I live in Porto"} {
		key := fmt.Sprint("k", i)
		c.whole(c.infers(key, fmt.Sprintf(`{"content":%q,"user_id":"sam"}`, text)), key)
	}
	if n := len(srv.Records()); n != 3 {
		t.Errorf("%d records, want 3", n)
	}
}

// An input that says an old fact again and a new one of the same key keeps both:
// the old one is evidence of the same answer.
func TestOneInputDoesNotTakeAwayWhatItSaysItself(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	first, _ := c.keeps("My name is Sam.")
	again, words := c.keeps("My name is Sam. My name is Samuel.")
	if again != first || words != "Name is Sam" {
		t.Errorf("answered %v %q, want %v", again, words, first)
	}
	if got := c.known("name"); fmt.Sprint(got) != "[Name is Sam Name is Samuel]" {
		t.Errorf("kept %q", got)
	}
	c.keeps("My name is Alex.")
	if got := c.known("name"); fmt.Sprint(got) != "[Name is Alex]" {
		t.Errorf("kept %q", got)
	}
	c.sound()
}
