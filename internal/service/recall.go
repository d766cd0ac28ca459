package service

import (
	"net/http"
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
		out[i] = s.fishView(c.key.Workspace, record, false)
	}
	answer(w, http.StatusOK, map[string]any{"results": out, "next_cursor": next})
}

// GetFishMemory answers GET /v1/memories/{id}.
func (s *Service) GetFishMemory(w http.ResponseWriter, r *http.Request, id string) {
	workspace := callOf(r).key.Workspace
	record, err := s.backend.Record(r.Context(), workspace, ServiceFishMem, id)
	if err != nil {
		s.fishFailure(w, r, err)
		return
	}
	s.accesses.note(workspace, s.sched.Now(), record)
	answer(w, http.StatusOK, s.fishView(workspace, record, false))
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
