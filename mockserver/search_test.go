package mockserver_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/mockserver"
)

// library is a caller whose scope "sam" holds these texts, the oldest first, a
// second apart.
func library(t *testing.T, texts ...string) *caller {
	t.Helper()
	srv := mockserver.Run(t)
	srv.Freeze()
	c := newCaller(t, srv)
	for i, text := range texts {
		c.want(c.do("POST", "/v1/memories", fmt.Sprintf(`{"content":%q,"user_id":"sam","infer":false,"metadata":{"n":%d,"even":%v}}`, text, i, i%2 == 0)), 200, "")
		srv.Advance(time.Second)
	}
	return c
}

// search gives the texts of the hits, in order.
func (c *caller) search(body string) []string {
	c.t.Helper()
	got := c.want(c.do("POST", "/v1/memories/search", `{"user_id":"sam",`+body+`}`), 200, "").fields()
	out := []string{}
	for _, hit := range got["results"].([]any) {
		out = append(out, hit.(map[string]any)["memory"].(string))
	}
	return out
}

func (c *caller) finds(body string, want ...string) {
	c.t.Helper()
	if got := c.search(body); strings.Join(got, "|") != strings.Join(want, "|") {
		c.t.Errorf("%s\ngot  %q\nwant %q", body, got, want)
	}
}

func TestSearchModesEnumerateOrRank(t *testing.T) {
	t.Parallel()
	const tea, coffee, bread = "Drinks green tea", "Drinks black coffee and green juice", "Bakes bread"
	c := library(t, tea, coffee, bread)
	c.finds(`"query":"green tea"`, tea, coffee)
	c.finds(`"query":"green tea","mode":"hybrid","sort_by":"recent"`, coffee, tea)
	c.finds(`"query":"green tea","mode":"recent"`, bread, coffee, tea)
	c.finds(`"query":"green tea","mode":"recent","sort_by":"importance","limit":2`, bread, coffee)
	c.finds(`"query":"green tea","mode":"important"`, bread, coffee, tea) // all as important: newest first
	c.finds(`"query":"green tea","mode":"typed","memory_type":"fact"`, bread, coffee, tea)
	c.finds(`"query":"green tea","mode":"typed","memory_type":"goal"`)
	c.finds(`"query":"green tea","mode":"recent","filters":{"even":true}`, bread, tea)
	c.finds(`"query":"green tea","mode":"recent","min_score":0.6`, bread, coffee)
	c.finds(`"query":"zebra"`)
}

func TestSearchOrdersByReads(t *testing.T) {
	t.Parallel()
	const one, two, three = "Owns a red car", "Owns a blue car", "Owns a green car"
	c := library(t, one, two, three)
	ids := map[string]string{}
	for _, m := range c.do("GET", "/v1/memories?user_id=sam", "").fields()["results"].([]any) {
		got := m.(map[string]any)
		ids[got["memory"].(string)] = got["id"].(string)
		if got["access_count"] != 0.0 || got["last_accessed_at"] != nil {
			t.Errorf("listing is no read: %v", got)
		}
	}
	for _, text := range []string{two, two, one} {
		c.srv.Advance(time.Second)
		c.want(c.do("GET", "/v1/memories/"+ids[text], ""), 200, "")
	}
	c.finds(`"query":"car","mode":"typed","sort_by":"most_accessed","limit":1`, two)
	c.finds(`"query":"car","mode":"typed","sort_by":"last_accessed","limit":1,"filters":{"field":"access_count","operator":"lt","value":3}`, one)
	read := c.do("GET", "/v1/memories/"+ids[two], "").fields()
	if read["access_count"] != 4.0 || read["last_accessed_at"] == nil { // two reads, a hit, and this one
		t.Errorf("reads of %q: %v, %v", two, read["access_count"], read["last_accessed_at"])
	}
	c.srv.Reset()
	if c.finds(`"query":"car"`); len(c.srv.Records()) != 0 {
		t.Error("a record survived Reset")
	}
}

func TestSearchStrategies(t *testing.T) {
	t.Parallel()
	var texts []string
	for i := range 7 {
		texts = append(texts, fmt.Sprintf("Visited harbour number %d", i))
	}
	// Near to a hit, and far from the query.
	texts = append(texts, "Number seven is lucky")
	c := library(t, texts...)
	if got := c.search(`"query":"harbour","search_strategy":"balanced","limit":50`); len(got) != 7 {
		t.Errorf("balanced: %q", got)
	}
	if got := c.search(`"query":"harbour","search_strategy":"precision","limit":50`); len(got) != 5 {
		t.Errorf("precision: %q", got)
	}
	wide := c.search(`"query":"harbour","search_strategy":"recall","limit":50`)
	if len(wide) != 8 || wide[7] != "Number seven is lucky" {
		t.Errorf("recall: %q", wide)
	}
	for query, want := range map[string]int{
		"Which harbour?": 5, "List every harbour": 8, "When was the harbour?": 7, "harbour": 8,
	} {
		if got := c.search(fmt.Sprintf(`"query":%q,"search_strategy":"auto","limit":50`, query)); len(got) != want {
			t.Errorf("auto, %s: %d hits, want %d", query, len(got), want)
		}
	}
}

func TestSearchShowsItsTrace(t *testing.T) {
	t.Parallel()
	c := library(t, "Drinks green tea", "Drinks black coffee")
	plain := c.want(c.do("POST", "/v1/memories/search", `{"query":"tea","user_id":"sam"}`), 200, "").fields()
	if _, there := plain["trace"]; there {
		t.Error("a trace nobody asked for")
	}
	got := c.want(c.do("POST", "/v1/memories/search", `{"query":"drinks tea","user_id":"sam","limit":1,"trace":true}`), 200, "").fields()
	trace := got["trace"].(map[string]any)
	hit := got["results"].([]any)[0].(map[string]any)
	if selected := trace["selected"].([]any); len(selected) != 1 || selected[0] != hit["id"] {
		t.Errorf("selected %v, hit %v", selected, hit["id"])
	}
	if near := trace["lists"].(map[string]any)["vector"].([]any); len(near) != 2 {
		t.Errorf("candidates %v", near)
	}
}

// A filter expression on the wire; its grammar is held by the service's own
// tests. The scope is not part of it and cannot be widened by it.
func TestSearchTakesFilterExpressions(t *testing.T) {
	t.Parallel()
	c := library(t, "Owns car zero", "Owns car one", "Owns car two", "Owns car three")
	c.want(c.do("POST", "/v1/memories", `{"content":"Owns car of kim","user_id":"kim","infer":false}`), 200, "")
	c.finds(`"query":"car","sort_by":"recent","filters":{"and":[{"field":"metadata.n","operator":"gte","value":1},{"not":{"field":"content","operator":"icontains","value":"TWO"}}]}`,
		"Owns car three", "Owns car one")
	c.finds(`"query":"car","sort_by":"recent","filters":{"or":[{"field":"metadata.even","operator":"eq","value":true},{"field":"content","operator":"contains","value":"kim"}]}`,
		"Owns car two", "Owns car zero")
	for _, bad := range []string{
		`{"and":[]}`, `{"field":"user_id","operator":"eq","value":"kim"}`, `{"field":"id","operator":"like","value":"x"}`, `{"a":[1]}`,
		strings.Repeat(`{"not":`, 60) + `{"field":"id","operator":"eq","value":"x"}` + strings.Repeat("}", 60),
	} {
		c.want(c.do("POST", "/v1/memories/search", `{"query":"car","user_id":"sam","filters":`+bad+`}`), 400, "INVALID_FILTER")
	}
	c.want(c.do("POST", "/v1/memories/search", `{"query":"car","user_id":"sam","filters":"x"}`), 400, "")
	c.want(c.do("POST", "/v1/memories/search", `{"query":"car","user_id":"sam","mode":"deep"}`), 400, "INVALID_REQUEST")
	c.want(c.do("POST", "/v1/memories/search", `{"query":"car","user_id":"sam","sort_by":"nearness"}`), 400, "INVALID_REQUEST")
}
