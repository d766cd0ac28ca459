package service

import (
	"net/http"
	"slices"
	"strings"

	"github.com/memwrite/memwrite-go/internal/api"
)

// QueryTurnMemories answers POST /v1/memory/query.
func (s *Service) QueryTurnMemories(w http.ResponseWriter, r *http.Request, params api.QueryTurnMemoriesParams) {
	records, _, f, err := s.promptSearch(w, r, params.XProjectID, params.XTenantID)
	switch {
	case f != nil:
		s.refuse(w, r, f)
	case err != nil:
		s.memoryFailure(w, r, err)
	default:
		answer(w, http.StatusOK, map[string]any{"memories": turnViews(records, true)})
	}
}

// RecallMemories answers POST /v1/memory/recall.
func (s *Service) RecallMemories(w http.ResponseWriter, r *http.Request, params api.RecallMemoriesParams) {
	records, types, f, err := s.promptSearch(w, r, params.XProjectID, params.XTenantID)
	switch {
	case f != nil:
		s.refuse(w, r, f)
		return
	case err != nil:
		s.memoryFailure(w, r, err)
		return
	}
	if len(types) > 0 {
		records = slices.DeleteFunc(records, func(r Record) bool { return !slices.Contains(types, r.Type) })
	}
	lines := make([]string, len(records))
	for i, record := range records {
		lines[i] = "- " + record.Text
	}
	answer(w, http.StatusOK, map[string]any{"context": strings.Join(lines, "\n"), "memories": turnViews(records, true), "used_fallback": false})
}

func (s *Service) promptSearch(w http.ResponseWriter, r *http.Request, project, tenantHeader *string) (records []Record, types []string, f *failure, err error) {
	c := callOf(r)
	scope, f := s.tenantScope(c, project, tenantHeader)
	if f != nil {
		return nil, nil, f, nil
	}
	o, f := s.readMemorySync(w, r)
	if f != nil {
		return nil, nil, f, nil
	}
	tenant, user, prompt := o.required("tenant_id", 0), o.required("user_id", 0), o.required("prompt", 0)
	k := clamp(o.integer("k", -1<<31, 1<<31), 5, 50)
	types = o.texts("types", 100)
	if len(o.problems()) == 0 && (blank(user) || blank(prompt)) {
		o.fail("prompt", "length", "user_id and prompt must not be blank")
	}
	if f := invalid(o); f != nil {
		return nil, nil, f, nil
	}
	if f := s.ownTenant(c, tenant); f != nil {
		return nil, nil, f, nil
	}
	scope.User = user
	records, err = s.backend.Search(r.Context(), c.key.Workspace, scope, cutRunes(prompt, 8000), k)
	return records, types, nil, err
}

// ListTurnMemories answers GET /v1/memory/{tenant}/{user}/list.
func (s *Service) ListTurnMemories(w http.ResponseWriter, r *http.Request, tenant string, user string, params api.ListTurnMemoriesParams) {
	c := callOf(r)
	scope, f := s.tenantScope(c, params.XProjectID, params.XTenantID)
	if f == nil {
		f = s.ownTenant(c, tenant)
	}
	if f == nil && params.Limit != nil && *params.Limit < 0 {
		f = fail(http.StatusUnprocessableEntity, "VALIDATION_ERROR", "limit must not be negative")
	}
	if f != nil {
		s.refuse(w, r, f)
		return
	}
	scope.User = user
	records, err := s.backend.Records(r.Context(), c.key.Workspace, scope, Page{})
	if err != nil {
		s.memoryFailure(w, r, err)
		return
	}
	total := len(records)
	if params.Limit != nil && *params.Limit > 0 && *params.Limit < total {
		records = records[:*params.Limit]
	}
	answer(w, http.StatusOK, map[string]any{"memories": turnViews(records, false), "total": total})
}

func turnViews(records []Record, scored bool) []turnMemoryBody {
	out := make([]turnMemoryBody, len(records))
	for i, r := range records {
		out[i] = turnMemoryView(r, scored)
	}
	return out
}

// ListProjects answers GET /org/projects.
func (s *Service) ListProjects(w http.ResponseWriter, r *http.Request) {
	c := callOf(r)
	project := c.key.Project
	if project == "" {
		project = DefaultProject
	}
	answer(w, http.StatusOK, []map[string]string{{"id": project, "tenant_id": c.key.Workspace, "name": "Default project"}})
}

// MemorySyncHealth answers GET /health, which takes no key.
func (s *Service) MemorySyncHealth(w http.ResponseWriter, r *http.Request) {
	answer(w, http.StatusOK, map[string]string{"status": "ok", "db": "ok", "vector_db": "ok", "cache": "ok"})
}
