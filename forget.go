package memwrite

import (
	"context"

	"github.com/memwrite/memwrite-go/internal/api"
)

// ForgetRequest names memories of one end user by their numbers.
type ForgetRequest struct {
	EndUserID string
	MemoryIDs []int64
	Reason    string // the service wants one for memories tagged pii
}

// ForgetResult says what was deleted. Deployments tell a number, or ids, or both.
type ForgetResult struct {
	Deleted    int
	DeletedIDs []int64
	Tries      int
	RequestID  string
}

// Forget deletes memories: DELETE /memory/forget. The ids are its identity, so
// it is sent again after a lost answer; a second call deletes nothing more.
// The client_ref that made a memory stays taken.
func (c *Client) Forget(ctx context.Context, req ForgetRequest) (*ForgetResult, error) {
	const op = "Forget"
	svc, err := c.forMemorySync(op)
	if err != nil {
		return nil, err
	}
	if err := checkEndUser(op, req.EndUserID); err != nil {
		return nil, err
	}
	if len(req.MemoryIDs) == 0 {
		return nil, invalid(op, "MemoryIDs", "is empty; at least one id is needed")
	}
	body, err := encodeBody(op, api.ForgetRequest{MemoryIds: req.MemoryIDs, Reason: ptr(req.Reason)})
	if err != nil {
		return nil, err
	}
	h, err := api.NewForgetMemoriesRequestWithBody(svc.base,
		&api.ForgetMemoriesParams{XEndUserID: req.EndUserID, XProjectID: ptr(c.project)}, "application/json", nil)
	if err != nil {
		return nil, invalid(op, "request", "cannot be built")
	}
	r := request{op: op, http: h, body: body, safe: true}
	var got struct {
		Deleted *int    `json:"deleted"`
		IDs     []int64 `json:"deleted_ids"`
	}
	r.form = decoded(&got, "the answer does not say what was deleted", func() bool { return got.Deleted != nil || got.IDs != nil })
	a, err := svc.do(ctx, r)
	if err != nil {
		return nil, err
	}
	res := &ForgetResult{Deleted: len(got.IDs), DeletedIDs: got.IDs, Tries: a.tries, RequestID: requestID("", "", a.Header)}
	if got.Deleted != nil {
		res.Deleted = *got.Deleted
	}
	return res, nil
}
