package service

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/memwrite/memwrite-go/internal/api"
)

// maxDeleteAll is how many targets one DELETE /v1/memories may have.
const maxDeleteAll = 25_000

func trimmed(s string) string { return strings.TrimSpace(s) }

// ListMemories answers GET /v1/memories; limit is clamped here.
func (s *Service) ListMemories(w http.ResponseWriter, r *http.Request, params api.ListMemoriesParams) {
	c := callOf(r)
	scope, f := queryScope(params.UserID, params.AgentID, params.RunID)
	if f != nil {
		s.refuse(w, r, f)
		return
	}
	limit := 50
	if params.Limit != nil {
		limit = min(max(*params.Limit, 1), 100)
	}
	page, f := readCursor(params.Cursor, limit)
	if f != nil {
		s.refuse(w, r, f)
		return
	}
	records, err := s.backend.Records(r.Context(), c.key.Workspace, scope, page)
	if err != nil {
		s.fishFailure(w, r, err)
		return
	}
	var next *string
	if len(records) > limit {
		records = records[:limit]
		next = nextCursor(records[limit-1].CreatedAt, records[limit-1].ID)
	}
	out := make([]fishMemoryBody, len(records))
	for i, record := range records {
		out[i] = fishView(record, false)
	}
	answer(w, http.StatusOK, map[string]any{"results": out, "next_cursor": next})
}

// GetFishMemory answers GET /v1/memories/{id}.
func (s *Service) GetFishMemory(w http.ResponseWriter, r *http.Request, id string) {
	record, err := s.backend.Record(r.Context(), callOf(r).key.Workspace, ServiceFishMem, id)
	if err != nil {
		s.fishFailure(w, r, err)
		return
	}
	answer(w, http.StatusOK, fishView(record, false))
}

// DeleteMemory answers DELETE /v1/memories/{id}. With a key a repeat gives the
// first answer, without one it is a 404.
func (s *Service) DeleteMemory(w http.ResponseWriter, r *http.Request, id string, params api.DeleteMemoryParams) {
	key, f := idempotencyKey(params.IdempotencyKey, s.opts.StrictKeys)
	if f != nil {
		s.refuse(w, r, f)
		return
	}
	d := Deletion{Operation: "delete", Key: key, IDs: []string{id}, Scope: Scope{Service: ServiceFishMem}}
	deleted, replayed, err := s.backend.Delete(r.Context(), callOf(r).key.Workspace, d)
	if err == nil && len(deleted) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		s.fishFailure(w, r, err)
		return
	}
	if replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	answer(w, http.StatusOK, map[string]any{"id": id, "deleted": true})
}

// DeleteAllMemories answers DELETE /v1/memories.
func (s *Service) DeleteAllMemories(w http.ResponseWriter, r *http.Request, params api.DeleteAllMemoriesParams) {
	scope, f := queryScope(params.UserID, params.AgentID, params.RunID)
	if f != nil {
		s.refuse(w, r, f)
		return
	}
	key, f := idempotencyKey(params.IdempotencyKey, s.opts.StrictKeys)
	if f != nil {
		s.refuse(w, r, f)
		return
	}
	d := Deletion{Operation: "delete_all", Key: key, Scope: scope, All: true, Max: maxDeleteAll}
	deleted, replayed, err := s.backend.Delete(r.Context(), callOf(r).key.Workspace, d)
	if err != nil {
		s.fishFailure(w, r, err)
		return
	}
	if replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	answer(w, http.StatusOK, map[string]int{"deleted": len(deleted)})
}

// SearchMemories answers POST /v1/memories/search.
func (s *Service) SearchMemories(w http.ResponseWriter, r *http.Request) {
	o, f := s.readFishMem(w, r)
	if f != nil {
		s.refuse(w, r, f)
		return
	}
	query, _ := o.text("query", 0)
	if blank(query) {
		s.refuse(w, r, fail(http.StatusBadRequest, "INVALID_QUERY", "query must not be blank"))
		return
	}
	scope, scoped := fishScope(o)
	if !scoped && len(o.problems()) == 0 {
		s.refuse(w, r, fail(http.StatusBadRequest, "SCOPE_REQUIRED", "one of user_id, agent_id and run_id is required"))
		return
	}
	limit := 10
	for _, field := range []string{"limit", "top_k"} {
		if n := o.integer(field, 1, 50); n != nil {
			limit = int(*n)
		}
	}
	kind := oneOf(o, "memory_type", "fact", "preference", "decision", "identity", "event", "observation", "goal", "todo")
	oneOf(o, "mode", "hybrid", "recent", "important", "typed")
	oneOf(o, "search_strategy", "balanced", "precision", "recall", "auto")
	sortBy := oneOf(o, "sort_by", "recent", "importance", "most_accessed", "last_accessed")
	floor := o.number("min_score", 0, 1)
	o.boolean("trace", false)
	equal, f := equalityFilter(o)
	if f == nil && len(o.problems()) > 0 {
		f = fail(http.StatusBadRequest, "INVALID_REQUEST", "the request is not valid")
		f.Details = o.problems()
	}
	if f != nil {
		s.refuse(w, r, f)
		return
	}
	records, err := s.backend.Search(r.Context(), callOf(r).key.Workspace, scope, query, 1000)
	if err != nil {
		s.fishFailure(w, r, err)
		return
	}
	records = slices.DeleteFunc(records, func(r Record) bool {
		return (kind != "" && r.Type != kind) || (floor != nil && r.Score < *floor) || !equal(r)
	})
	switch sortBy {
	case "recent":
		slices.SortStableFunc(records, func(a, b Record) int { return b.CreatedAt.Compare(a.CreatedAt) })
	case "importance":
		slices.SortStableFunc(records, func(a, b Record) int {
			switch {
			case a.Importance > b.Importance:
				return -1
			case a.Importance < b.Importance:
				return 1
			}
			return 0
		})
	}
	out := []fishMemoryBody{}
	for _, record := range records[:min(limit, len(records))] {
		out = append(out, fishView(record, true))
	}
	answer(w, http.StatusOK, map[string]any{"results": out})
}

func oneOf(o *object, field string, values ...string) string {
	v, ok := o.text(field, 0)
	if ok && !slices.Contains(values, v) {
		o.fail(field, "value", "must be one of %s", strings.Join(values, ", "))
	}
	return v
}

// equalityFilter reads the flat form of filters: at most 20 metadata fields
// that must be equal. The expression form is refused by name rather than
// answered wrongly.
func equalityFilter(o *object) (func(Record) bool, *failure) {
	raw := o.document("filters")
	if raw == nil {
		return func(Record) bool { return true }, nil
	}
	var want map[string]any
	if json.Unmarshal(raw, &want) != nil || len(want) > 20 {
		return nil, fail(http.StatusBadRequest, "INVALID_FILTER", "a filter holds at most 20 fields")
	}
	for k, v := range want {
		switch v.(type) {
		case string, float64, bool:
		default:
			return nil, fail(http.StatusBadRequest, "INVALID_FILTER", "this server takes filters of metadata fields that are equal")
		}
		if len(k) > 128 {
			return nil, fail(http.StatusBadRequest, "INVALID_FILTER", "a filter's field is at most 128 characters")
		}
	}
	return func(r Record) bool {
		var have map[string]any
		_ = json.Unmarshal(r.Metadata, &have)
		for k, v := range want {
			got, ok := have[k]
			switch got.(type) {
			case string, float64, bool:
			default:
				return false
			}
			if !ok || got != v {
				return false
			}
		}
		return true
	}, nil
}
