package service

// scopeOf is the permission a route needs. An unknown route needs a key and
// nothing else, so that nobody without one learns which routes exist.
func (s *Service) scopeOf(pattern string) (scope string, public bool) {
	switch pattern {
	case "GET /health":
		return "", true
	case "POST /memory/add", "POST /memory/bulk-add", "POST /v1/memory/add_turn", "DELETE /memory/forget":
		return ScopeMemoryAdd, false
	case "GET /memory/{id}", "POST /memory/query", "POST /v1/memory/query", "POST /v1/memory/recall",
		"GET /v1/memory/{tenant}/{user}/list", "GET /v1/memories", "GET /v1/memories/{id}", "POST /v1/memories/search":
		return ScopeMemoryRead, false
	case "GET /org/projects":
		return ScopeProjectsRead, false
	case "POST /v1/memories", "DELETE /v1/memories", "DELETE /v1/memories/{id}", "POST /v1/operations/{id}/retry":
		return ScopeMemoryWrite, false
	case "GET /v1/events":
		return s.opts.EventListScope, false
	case "GET /v1/events/{id}", "GET /v1/operations/{id}", "GET /v1/health", "GET /v1/usage":
		return ScopeOperationsRead, false
	}
	return "", false
}
