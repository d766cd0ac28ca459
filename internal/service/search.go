package service

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
)

// Numbers of a search.
const (
	// maxCandidates bounds what a ranking is asked for before filters are
	// applied to it; a filter that few of a large scope meet may miss some.
	maxCandidates = 1000
	// precisionLimit is how many memories the precision strategy gives at most.
	precisionLimit = 5
	// recallSeeds is how many hits the recall strategy looks around.
	recallSeeds = 5
)

// search is a validated POST /v1/memories/search.
type search struct {
	query    string
	scope    Scope
	limit    int
	kind     string
	mode     string
	strategy string
	sortBy   string
	floor    *float64
	filter   filter
	trace    bool
}

// SearchMemories answers POST /v1/memories/search.
func (s *Service) SearchMemories(w http.ResponseWriter, r *http.Request) {
	o, f := s.readFishMem(w, r)
	if f != nil {
		s.refuse(w, r, f)
		return
	}
	q, f := readSearch(o)
	if f != nil {
		s.refuse(w, r, f)
		return
	}
	workspace := callOf(r).key.Workspace
	ranked, near, err := s.rank(r.Context(), workspace, q)
	if err != nil {
		s.fishFailure(w, r, err)
		return
	}
	hits := ranked[:min(q.limit, len(ranked))]
	out := make([]fishMemoryBody, 0, len(hits))
	for _, record := range hits {
		out = append(out, s.fishView(workspace, record, true))
	}
	s.accesses.note(workspace, s.sched.Now(), hits...)
	body := map[string]any{"results": out}
	if q.trace {
		body["trace"] = traceOf(near, ranked, hits)
	}
	answer(w, http.StatusOK, body)
}

func readSearch(o *object) (search, *failure) {
	q := search{limit: 10}
	q.query, _ = o.text("query", 0)
	if blank(q.query) {
		return q, fail(http.StatusBadRequest, "INVALID_QUERY", "query must not be blank")
	}
	scope, scoped := fishScope(o)
	if !scoped && len(o.problems()) == 0 {
		return q, fail(http.StatusBadRequest, "SCOPE_REQUIRED", "one of user_id, agent_id and run_id is required")
	}
	q.scope = scope
	for _, field := range []string{"limit", "top_k"} {
		if n := o.integer(field, 1, 50); n != nil {
			q.limit = int(*n)
		}
	}
	q.kind = oneOf(o, "memory_type", "fact", "preference", "decision", "identity", "event", "observation", "goal", "todo")
	q.mode = oneOf(o, "mode", "hybrid", "recent", "important", "typed")
	q.strategy = oneOf(o, "search_strategy", "balanced", "precision", "recall", "auto")
	q.sortBy = oneOf(o, "sort_by", "recent", "importance", "most_accessed", "last_accessed")
	q.floor = o.number("min_score", 0, 1)
	q.trace = o.boolean("trace", false)
	f, bad := readFilter(o)
	if bad == nil && len(o.problems()) > 0 {
		bad = fail(http.StatusBadRequest, "INVALID_REQUEST", "the request is not valid")
		bad.Details = o.problems()
	}
	q.filter = f
	return q, bad
}

func oneOf(o *object, field string, values ...string) string {
	v, ok := o.text(field, 0)
	if ok && !slices.Contains(values, v) {
		o.fail(field, "value", "must be one of %s", strings.Join(values, ", "))
	}
	return v
}

// rank gives what the search finds, in its order, and the records that were
// near to the query, for the trace. Three modes enumerate the scope and look at
// no query: recent, important, and typed, which sort_by orders. The hybrid mode
// ranks by nearness; sort_by then puts the hits in another order.
func (s *Service) rank(ctx context.Context, workspace string, q search) (ranked, near []Record, err error) {
	order := q.sortBy
	switch q.mode {
	case "recent":
		order = "recent"
	case "important":
		order = "importance"
	case "typed":
		order = cmp.Or(order, "recent")
	default:
		near, err = s.nearest(ctx, workspace, q)
		if err != nil {
			return nil, nil, err
		}
		ranked = s.keep(workspace, q, slices.Clone(near))
		if q.floor != nil {
			ranked = slices.DeleteFunc(ranked, func(r Record) bool { return r.Score < *q.floor })
		}
		if q.resolved() == "precision" {
			ranked = ranked[:min(precisionLimit, len(ranked))]
		}
		s.sort(workspace, order, ranked)
		return ranked, near, nil
	}
	var page Page
	if all, ok := q.filter.(allOf); ok && len(all) == 0 && q.kind == "" && order == "recent" {
		page.Limit = q.limit // the store has that order, and nothing will be dropped
	}
	ranked, err = s.backend.Records(ctx, workspace, q.scope, page)
	if err != nil {
		return nil, nil, err
	}
	ranked = s.keep(workspace, q, ranked)
	s.sort(workspace, order, ranked)
	ranked = ranked[:min(q.limit, len(ranked))]
	for i := range ranked {
		ranked[i].Score = 1 - float64(i)/float64(len(ranked)) // its place: there is no nearness
	}
	if q.floor != nil {
		ranked = slices.DeleteFunc(ranked, func(r Record) bool { return r.Score < *q.floor })
	}
	return ranked, nil, nil
}

// nearest is the candidates of the hybrid mode. The recall strategy also looks
// around its best hits: what is near to a hit is found although it shares no
// word with the query, at no more than half of that hit's score.
func (s *Service) nearest(ctx context.Context, workspace string, q search) ([]Record, error) {
	near, err := s.backend.Search(ctx, workspace, q.scope, q.query, maxCandidates)
	if err != nil || q.resolved() != "recall" {
		return near, err
	}
	found := make(map[string]bool, len(near))
	for _, r := range near {
		found[r.ID] = true
	}
	for _, seed := range near[:min(recallSeeds, len(near))] {
		around, err := s.backend.Search(ctx, workspace, q.scope, seed.Text, maxCandidates)
		if err != nil {
			return nil, err
		}
		for _, r := range around {
			if !found[r.ID] {
				found[r.ID] = true
				r.Score *= seed.Score / 2
				near = append(near, r)
			}
		}
	}
	slices.SortStableFunc(near, func(a, b Record) int { return cmp.Compare(b.Score, a.Score) })
	return near[:min(maxCandidates, len(near))], nil
}

// keep drops the records that the type or the filter excludes.
func (s *Service) keep(workspace string, q search, records []Record) []Record {
	return slices.DeleteFunc(records, func(r Record) bool {
		return (q.kind != "" && r.Type != q.kind) || !q.filter.holds(&filtered{Record: &r, accesses: s.accesses.of(workspace, r.ID)})
	})
}

// sort puts records in an order; of two that are alike the one in front stays
// there.
func (s *Service) sort(workspace, by string, records []Record) {
	reads := map[string]access{}
	if by == "most_accessed" || by == "last_accessed" {
		for _, r := range records {
			reads[r.ID] = s.accesses.of(workspace, r.ID)
		}
	}
	slices.SortStableFunc(records, func(a, b Record) int {
		switch by {
		case "recent":
			return b.CreatedAt.Compare(a.CreatedAt)
		case "importance":
			return cmp.Compare(b.Importance, a.Importance)
		case "most_accessed":
			return cmp.Compare(reads[b.ID].count, reads[a.ID].count)
		case "last_accessed":
			return reads[b.ID].last.Compare(reads[a.ID].last)
		}
		return 0
	})
}

// resolved is the strategy that auto comes to, by the query's own words.
func (q search) resolved() string {
	if q.strategy != "auto" {
		return q.strategy
	}
	words := strings.FieldsFunc(strings.ToLower(q.query), func(r rune) bool { return r == ' ' || r == '?' || r == ',' || r == '.' })
	has := func(list ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(list, w) })
	}
	switch {
	case has("all", "every", "everything", "list", "summarize", "summarise", "summary", "overall"):
		return "recall"
	case len(words) > 0 && words[0] == "when", has("recently", "previously", "currently", "yesterday", "before", "after"):
		return "balanced"
	case len(words) > 0 && slices.Contains([]string{"who", "what", "where", "which", "is", "are", "was", "were", "do", "does", "did", "has", "have", "had"}, words[0]):
		return "precision"
	}
	return "recall"
}

type traced struct {
	ID    string  `json:"id"`
	Score float64 `json:"score"`
}

// traceOf shows how the answer came about. This server has one way to find
// something, which stands where the live service lists its vectors.
func traceOf(near, ranked, hits []Record) any {
	scores := func(records []Record) []traced {
		out := make([]traced, len(records))
		for i, r := range records {
			out[i] = traced{r.ID, r.Score}
		}
		return out
	}
	ids, items := []string{}, []map[string]string{}
	for _, r := range hits {
		ids = append(ids, r.ID)
		items = append(items, map[string]string{"id": r.ID, "content": r.Text})
	}
	none := []traced{}
	return map[string]any{
		"lists":    map[string]any{"vector": scores(near), "fts": none, "graph": none, "temporal": none},
		"fused":    scores(ranked),
		"selected": ids, "selected_items": items,
	}
}
