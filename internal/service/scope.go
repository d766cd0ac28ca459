package service

import (
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"
)

// DefaultProject is the project of a key that is pinned to none.
const DefaultProject = "proj_0000000000000000"

// memoryScope is whose memory a /memory/* call is about, from its headers.
func (s *Service) memoryScope(c *call, endUser string, project, tenant *string) (Scope, *failure) {
	if blank(endUser) {
		return Scope{}, fail(http.StatusBadRequest, "MISSING_END_USER_ID", "X-End-User-ID is required")
	}
	if f := readable("X-End-User-ID", endUser); f != nil {
		return Scope{}, f
	}
	scope, f := s.tenantScope(c, project, tenant)
	scope.User = endUser
	return scope, f
}

// readable refuses a name that is not UTF-8: no JSON can carry it, so it would
// come back as another one, which may be somebody else's.
func readable(field, v string) *failure {
	if utf8.ValidString(v) {
		return nil
	}
	f := fail(http.StatusUnprocessableEntity, "VALIDATION_ERROR", field+" must be UTF-8")
	f.Details = []issue{{Field: field, Type: "value", Message: "must be UTF-8"}}
	return f
}

// tenantScope is the tenant and project of a MemorySync call. An empty project
// header is not the same as none.
func (s *Service) tenantScope(c *call, project, tenant *string) (Scope, *failure) {
	scope := Scope{Service: ServiceMemorySync, Tenant: c.key.Workspace, Project: c.key.Project}
	if scope.Project == "" {
		scope.Project = DefaultProject
	}
	if tenant != nil {
		if *tenant == "" || strings.Trim(*tenant, tenantLetters) != "" {
			return scope, fail(http.StatusBadRequest, "INVALID_TENANT_ID_FORMAT", "X-Tenant-ID must be letters, digits and hyphens")
		}
		if f := s.ownTenant(c, *tenant); f != nil {
			return scope, f
		}
	}
	if project != nil {
		if !validProject(*project) {
			return scope, fail(http.StatusBadRequest, "INVALID_PROJECT_ID", "X-Project-ID must be proj_ and 16 hex digits")
		}
		if *project != scope.Project {
			return scope, detail(http.StatusForbidden, "Project does not belong to this key")
		}
	}
	return scope, nil
}

const tenantLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-"

// ownTenant refuses a tenant that is not the key's. "default" names the key's
// own one, for a key that may not list its projects.
func (s *Service) ownTenant(c *call, tenant string) *failure {
	if tenant == c.key.Workspace || tenant == s.opts.DefaultTenant {
		return nil
	}
	return detail(http.StatusForbidden, "Tenant does not belong to this key")
}

func validProject(id string) bool {
	hex, ok := strings.CutPrefix(id, "proj_")
	return ok && len(hex) == 16 && strings.Trim(hex, "0123456789abcdef") == ""
}

// maxScopeID is FishMem's limit on user_id, agent_id and run_id.
const maxScopeID = 512

// fishScope reads the three scope ids of a body; at least one has to be there.
func fishScope(o *object) (Scope, bool) {
	scope := Scope{Service: ServiceFishMem}
	for field, to := range map[string]*string{"user_id": &scope.User, "agent_id": &scope.Agent, "run_id": &scope.Run} {
		v, ok := o.text(field, 0)
		if !ok {
			continue
		}
		v = strings.TrimSpace(v)
		if v == "" || utf8.RuneCountInString(v) > maxScopeID {
			o.fail(field, "length", "must be 1 to %d characters", maxScopeID)
			continue
		}
		*to = v
	}
	return scope, scope.User != "" || scope.Agent != "" || scope.Run != ""
}

// queryScope is fishScope for query parameters.
func queryScope(user, agent, run *string) (Scope, *failure) {
	scope := Scope{Service: ServiceFishMem}
	for from, to := range map[*string]*string{user: &scope.User, agent: &scope.Agent, run: &scope.Run} {
		if from == nil {
			continue
		}
		*to = strings.TrimSpace(*from)
		if !utf8.ValidString(*to) {
			return scope, fail(http.StatusBadRequest, "INVALID_REQUEST", "a scope id must be UTF-8")
		}
		if utf8.RuneCountInString(*to) > maxScopeID {
			return scope, fail(http.StatusBadRequest, "INVALID_REQUEST", "a scope id is at most 512 characters")
		}
	}
	if scope.User == "" && scope.Agent == "" && scope.Run == "" {
		return scope, fail(http.StatusBadRequest, "SCOPE_REQUIRED", "one of user_id, agent_id and run_id is required")
	}
	return scope, nil
}

func typeName(err error) string { return fmt.Sprintf("%T", err) }
