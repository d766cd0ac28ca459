package conformance

import "encoding/json"

// firstTenant is the tenant_id of the first project.
func firstTenant(a answer) string {
	var projects []struct {
		Tenant string `json:"tenant_id"`
	}
	if json.Unmarshal(a.body, &projects) != nil || len(projects) == 0 {
		return ""
	}
	return projects[0].Tenant
}
