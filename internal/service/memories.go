package service

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/memwrite/memwrite-go/internal/api"
)

// GetMemory answers GET /memory/{id}: a memory of this end user, or 404.
func (s *Service) GetMemory(w http.ResponseWriter, r *http.Request, id int64, params api.GetMemoryParams) {
	c := callOf(r)
	scope, f := s.memoryScope(c, params.XEndUserID, params.XProjectID, params.XTenantID)
	if f != nil {
		s.refuse(w, r, f)
		return
	}
	record, err := s.backend.RecordByNumber(r.Context(), c.key.Workspace, id)
	if err == nil && (record.Scope.Service != ServiceMemorySync || record.Scope.User != scope.User || record.Scope.Project != scope.Project) {
		err = ErrNotFound
	}
	if err != nil {
		s.memoryFailure(w, r, err)
		return
	}
	answerMemory(w, http.StatusOK, &record)
}

// ForgetMemories answers DELETE /memory/forget. Ids that are not there are no
// error, so a repeat is harmless.
func (s *Service) ForgetMemories(w http.ResponseWriter, r *http.Request, params api.ForgetMemoriesParams) {
	c := callOf(r)
	scope, f := s.memoryScope(c, params.XEndUserID, params.XProjectID, params.XTenantID)
	if f != nil {
		s.refuse(w, r, f)
		return
	}
	o, f := s.readMemorySync(w, r)
	if f != nil {
		s.refuse(w, r, f)
		return
	}
	ids := memoryIDs(o)
	o.text("reason", 0)
	if f := invalid(o); f != nil {
		s.refuse(w, r, f)
		return
	}
	targets, numberOf := make([]string, 0, len(ids)), map[string]int64{}
	for _, id := range ids {
		record, err := s.backend.RecordByNumber(r.Context(), c.key.Workspace, id)
		if err == nil && record.Scope.Service == ServiceMemorySync && record.Scope.User == scope.User && record.Scope.Project == scope.Project {
			targets = append(targets, record.ID)
			numberOf[record.ID] = id
		}
	}
	deletedIDs := []int64{}
	if len(targets) > 0 {
		deleted, _, err := s.backend.Delete(r.Context(), c.key.Workspace, Deletion{Operation: "forget", IDs: targets, Scope: scope})
		if err != nil {
			s.memoryFailure(w, r, err)
			return
		}
		for _, id := range deleted {
			deletedIDs = append(deletedIDs, numberOf[id])
		}
	}
	answer(w, http.StatusOK, map[string]any{"deleted": len(deletedIDs), "deleted_ids": deletedIDs})
}

// memoryIDs reads numbers, and the "m_" form the turn routes print.
func memoryIDs(o *object) []int64 {
	if !o.has("memory_ids") {
		o.fail("memory_ids", "missing", "is required")
		return nil
	}
	var out []int64
	for _, raw := range o.list("memory_ids", 1, 1000) {
		text := string(raw)
		if len(raw) > 0 && raw[0] == '"' {
			_ = json.Unmarshal(raw, &text)
			text = strings.TrimPrefix(text, "m_")
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			o.fail("memory_ids", "type", "must be an array of integers")
			return nil
		}
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// QueryMemories answers POST /memory/query. k is clamped, not refused.
func (s *Service) QueryMemories(w http.ResponseWriter, r *http.Request, params api.QueryMemoriesParams) {
	c := callOf(r)
	scope, f := s.memoryScope(c, params.XEndUserID, params.XProjectID, params.XTenantID)
	if f != nil {
		s.refuse(w, r, f)
		return
	}
	o, f := s.readMemorySync(w, r)
	if f != nil {
		s.refuse(w, r, f)
		return
	}
	query := o.required("query", 0)
	k := clamp(o.integer("k", -1<<31, 1<<31), 5, 50)
	keep := filterOf(o)
	if blank(query) && len(o.problems()) == 0 {
		o.fail("query", "length", "must not be blank")
	}
	if f := invalid(o); f != nil {
		s.refuse(w, r, f)
		return
	}
	start := s.sched.Now()
	// A filter is applied after the ranking, so the ranking is asked for more.
	records, err := s.backend.Search(r.Context(), c.key.Workspace, scope, cutRunes(query, 8000), 1000)
	if err != nil {
		s.memoryFailure(w, r, err)
		return
	}
	out := []memoryBody{}
	for _, record := range records {
		if keep(record) && len(out) < k {
			body := memoryView(record)
			body.Score = &record.Score
			out = append(out, body)
		}
	}
	answer(w, http.StatusOK, map[string]any{"memories": out, "latency_ms": float64(s.sched.Now().Sub(start).Microseconds()) / 1000})
}

// filterOf reads the filters of a query; all that are set must hold.
func filterOf(o *object) func(Record) bool {
	raw := o.document("filters")
	if raw == nil {
		return func(Record) bool { return true }
	}
	f, ok := o.child("filters", 0, raw)
	if !ok {
		return func(Record) bool { return false }
	}
	tags, sources := f.texts("tags", 100), f.texts("sources", 100)
	if source, ok := f.text("source", 64); ok {
		sources = append(sources, source)
	}
	kind, hasKind := f.text("memory_type", 0)
	since, until := timeField(f, "since"), timeField(f, "until")
	return func(r Record) bool {
		switch {
		case len(tags) > 0 && !slices.ContainsFunc(tags, func(t string) bool { return slices.Contains(r.Tags, strings.ToLower(t)) }):
		case len(sources) > 0 && !slices.Contains(sources, r.Source):
		case hasKind && kind != r.Type:
		case !since.IsZero() && r.CreatedAt.Before(since):
		case !until.IsZero() && r.CreatedAt.After(until):
		default:
			return true
		}
		return false
	}
}

func timeField(o *object, field string) time.Time {
	v, ok := o.text(field, 0)
	if !ok {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, v)
	if err != nil {
		o.fail(field, "value", "must be an ISO 8601 time with an offset")
	}
	return t
}

func clamp(n *int64, absent, most int) int {
	if n == nil {
		return absent
	}
	return int(min(max(*n, 1), int64(most)))
}

func cutRunes(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n])
}
