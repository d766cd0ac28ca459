package memwrite

import (
	"context"

	"github.com/memwrite/memwrite-go/internal/api"
)

// FactQuery asks for what was learned from the turns of one user.
type FactQuery struct {
	TenantID string // empty: as for AddTurn
	UserID   string
	Prompt   string
	K        int // 0 leaves the service's default of 5
}

// QueryFacts asks MemorySync about turns: POST /v1/memory/query. Best first.
func (c *Client) QueryFacts(ctx context.Context, q FactQuery) ([]Fact, error) {
	const op = "QueryFacts"
	svc, tenant, err := c.tenantFor(ctx, op, q.TenantID, q.UserID)
	if err != nil {
		return nil, err
	}
	if err := checkText(op, "Prompt", q.Prompt); err != nil {
		return nil, err
	}
	b := api.TurnQueryRequest{TenantID: tenant, UserID: q.UserID, Prompt: q.Prompt}
	if q.K != 0 {
		b.K = &q.K
	}
	body, err := encodeBody(op, b)
	if err != nil {
		return nil, err
	}
	h, err := api.NewQueryTurnMemoriesRequestWithBody(svc.base, &api.QueryTurnMemoriesParams{XProjectID: ptr(c.project)}, "application/json", nil)
	if err != nil {
		return nil, invalid(op, "request", "cannot be built")
	}
	var got factList
	r := request{op: op, http: h, body: body, safe: true, texts: []string{q.Prompt}}
	return readList(ctx, svc, r, &got, func() *[]Fact { return got.Memories })
}

// Recollection is a ready context for a prompt and the facts it was made of.
type Recollection struct {
	Context      string // may be empty
	Facts        []Fact
	UsedFallback bool
}

// Recall asks MemorySync for a context: POST /v1/memory/recall.
func (c *Client) Recall(ctx context.Context, q FactQuery) (*Recollection, error) {
	const op = "Recall"
	svc, tenant, err := c.tenantFor(ctx, op, q.TenantID, q.UserID)
	if err != nil {
		return nil, err
	}
	if err := checkText(op, "Prompt", q.Prompt); err != nil {
		return nil, err
	}
	b := api.RecallRequest{TenantID: tenant, UserID: q.UserID, Prompt: q.Prompt}
	if q.K != 0 {
		b.K = &q.K
	}
	body, err := encodeBody(op, b)
	if err != nil {
		return nil, err
	}
	h, err := api.NewRecallMemoriesRequestWithBody(svc.base, &api.RecallMemoriesParams{XProjectID: ptr(c.project)}, "application/json", nil)
	if err != nil {
		return nil, invalid(op, "request", "cannot be built")
	}
	var got struct {
		factList
		Context      string `json:"context"`
		UsedFallback bool   `json:"used_fallback"`
	}
	r := request{op: op, http: h, body: body, safe: true, texts: []string{q.Prompt}}
	facts, err := readList(ctx, svc, r, &got, func() *[]Fact { return got.Memories })
	if err != nil {
		return nil, err
	}
	return &Recollection{Context: got.Context, Facts: facts, UsedFallback: got.UsedFallback}, nil
}

// Facts lists what was learned from a user's turns, newest first; limit 0 is
// all. An empty tenant is found as for AddTurn.
func (c *Client) Facts(ctx context.Context, tenantID, userID string, limit int) ([]Fact, error) {
	const op = "Facts"
	svc, tenant, err := c.tenantFor(ctx, op, tenantID, userID)
	if err != nil {
		return nil, err
	}
	h, err := api.NewListTurnMemoriesRequest(svc.base, tenant, userID, &api.ListTurnMemoriesParams{Limit: &limit, XProjectID: ptr(c.project)})
	if err != nil {
		return nil, invalid(op, "UserID", "cannot stand in a path")
	}
	var got factList
	return readList(ctx, svc, request{op: op, http: h, safe: true}, &got, func() *[]Fact { return got.Memories })
}

type factList struct {
	Memories *[]Fact `json:"memories"`
}

func (c *Client) tenantFor(ctx context.Context, op, tenant, user string) (*service, string, error) {
	svc, err := c.forMemorySync(op)
	if err != nil {
		return nil, "", err
	}
	if err := checkID(op, user); err != nil {
		return nil, "", err
	}
	if tenant = first(tenant, c.tenant); tenant == "" {
		tenant, err = c.lookUpTenant(ctx, op)
	}
	return svc, tenant, err
}
