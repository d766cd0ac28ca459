package memwrite

import (
	"context"
	"net/http"

	"github.com/memwrite/memwrite-go/internal/api"
)

// Project is a project of a MemorySync organisation.
type Project struct {
	ID       string `json:"id"`
	TenantID string `json:"tenant_id"`
	Name     string `json:"name"`
}

// Projects lists the projects the key may see: GET /org/projects.
func (c *Client) Projects(ctx context.Context) ([]Project, error) {
	const op = "Projects"
	svc, err := c.forMemorySync(op)
	if err != nil {
		return nil, err
	}
	h, err := api.NewListProjectsRequest(svc.base)
	if err != nil {
		return nil, invalid(op, "request", "cannot be built")
	}
	var got *[]Project
	return readList(ctx, svc, request{op: op, http: h, safe: true}, &got, func() *[]Project { return got })
}

// ServiceHealth is what one service says of itself.
type ServiceHealth struct {
	Configured bool
	Status     string // "ok" or "degraded"; open
	Err        error  // it did not answer
}

// Health is the state of both services.
type Health struct {
	MemorySync, FishMem ServiceHealth
}

// OK tells whether every configured service answered "ok".
func (h *Health) OK() bool {
	for _, s := range []ServiceHealth{h.MemorySync, h.FishMem} {
		if s.Configured && (s.Err != nil || s.Status != "ok") {
			return false
		}
	}
	return true
}

// Health asks each configured service. A service that does not answer is an
// Err beside the other's state; the error is for none having answered.
func (c *Client) Health(ctx context.Context) (*Health, error) {
	h := &Health{
		MemorySync: c.memorySync.health(ctx, api.NewMemorySyncHealthRequest),
		FishMem:    c.fishMem.health(ctx, api.NewFishMemHealthRequest),
	}
	var firstErr error
	for _, s := range []ServiceHealth{h.MemorySync, h.FishMem} {
		if s.Configured && s.Err == nil {
			return h, nil
		}
		if firstErr == nil {
			firstErr = s.Err
		}
	}
	return h, firstErr
}

func (s *service) health(ctx context.Context, build func(string) (*http.Request, error)) ServiceHealth {
	if s == nil {
		return ServiceHealth{}
	}
	h, err := build(s.base)
	if err != nil {
		return ServiceHealth{Configured: true, Err: err}
	}
	var got struct {
		Status string `json:"status"`
	}
	r := request{op: "Health", http: h, safe: true}
	r.form = decoded(&got, "the answer names no status", func() bool { return got.Status != "" })
	if _, err := s.do(ctx, r); err != nil {
		return ServiceHealth{Configured: true, Err: err}
	}
	return ServiceHealth{Configured: true, Status: got.Status}
}

// UsageAccount is one unit's account. Granted and Available are nil without a
// limit.
type UsageAccount struct {
	Granted   *int64 `json:"granted"`
	Available *int64 `json:"available"`
	Reserved  int64  `json:"reserved"` // held by writes that have not ended
	Settled   int64  `json:"settled"`  // used
	Released  int64  `json:"released"` // given back by writes that failed
	ResetsAt  string `json:"resets_at"`
}

// Usage is the account of a reference server.
type Usage struct {
	Adds     UsageAccount `json:"adds"`
	Credits  UsageAccount `json:"credits"`
	Balanced bool         `json:"balanced"` // debits equal credits
}

// Usage reads the account: GET /v1/usage. Only the reference server has it; a
// live service answers ErrNotFound.
func (c *Client) Usage(ctx context.Context) (*Usage, error) {
	const op = "Usage"
	svc, err := c.forFishMem(op)
	if err != nil {
		return nil, err
	}
	h, err := api.NewGetUsageRequest(svc.base)
	if err != nil {
		return nil, invalid(op, "request", "cannot be built")
	}
	var got struct {
		Adds    *UsageAccount `json:"adds"`
		Credits *UsageAccount `json:"credits"`
		Usage
	}
	r := request{op: op, http: h, safe: true}
	r.form = decoded(&got, "the answer is not an account", func() bool { return got.Adds != nil && got.Credits != nil })
	if _, err := svc.do(ctx, r); err != nil {
		return nil, err
	}
	got.Usage.Adds, got.Usage.Credits = *got.Adds, *got.Credits
	return &got.Usage, nil
}
