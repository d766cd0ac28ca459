package memwrite

import (
	"context"
	"errors"
	"time"

	"github.com/memwrite/memwrite-go/internal/sched"
)

// tenantLife is how long a tenant is believed.
const tenantLife = time.Hour

// tenantCache keeps the one tenant of a client's key. Its channel holds a
// single token, so that many first calls make one request.
type tenantCache struct {
	token chan struct{}
	id    string
	until time.Time
}

func (t *tenantCache) init() {
	t.token = make(chan struct{}, 1)
	t.token <- struct{}{}
}

// lookUpTenant is the tenant of the first project. A key that may not ask (401
// or 403, as evaluation keys) belongs to "default"; any other failure is a
// failure, because a turn in the wrong tenant would be lost without a trace.
func (c *Client) lookUpTenant(ctx context.Context, op string) (string, error) {
	if err := c.sched.Wait(ctx, sched.Forever, c.tenants.token); err != nil {
		return "", &Error{Op: op, Kind: endOf(ctx), causes: causesOf(ctx)}
	}
	defer func() { c.tenants.token <- struct{}{} }()
	if c.tenants.id != "" && c.sched.Now().Before(c.tenants.until) {
		return c.tenants.id, nil
	}
	id := "default"
	projects, err := c.Projects(ctx)
	switch {
	case errors.Is(err, ErrUnauthorized), errors.Is(err, ErrForbidden):
	case err != nil:
		return "", err
	case len(projects) == 0 || projects[0].TenantID == "":
		return "", &Error{Op: op, Kind: KindNotFound, Message: "GET /org/projects names no tenant; set one with WithTenant"}
	default:
		id = projects[0].TenantID
	}
	c.tenants.id, c.tenants.until = id, c.sched.Now().Add(tenantLife)
	return id, nil
}
