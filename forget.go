package memwrite

import (
	"context"
	"errors"

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

// ReplaceRequest is an edit: Old was written before, New is the record now.
// Both need a Ref, and not the same one.
type ReplaceRequest struct {
	Old    AddRequest // exactly as it was sent; only needed in full without OldIDs
	OldIDs []int64    // the first result's MemoryIDs; empty: found by sending Old again
	New    AddRequest
	Reason string // passed to Forget
}

// ReplaceResult is what both halves did.
type ReplaceResult struct {
	Added     *AddResult
	Forgotten *ForgetResult // nil when nothing was left to forget
}

// Replace adds the new version and then forgets what the old one made. The new
// one comes first, so that stopping between the two leaves one memory too many
// and never one too few; calling again finishes it. A memory that the service
// matched the new text to is kept, also when the old version made it.
func (c *Client) Replace(ctx context.Context, req ReplaceRequest) (*ReplaceResult, error) {
	const op = "Replace"
	for _, r := range []struct {
		name string
		ref  Ref
	}{{"Old.Ref", req.Old.Ref}, {"New.Ref", req.New.Ref}} {
		if err := r.ref.Err(); err != nil {
			return nil, err
		}
		if r.ref.IsZero() {
			return nil, invalid(op, r.name, "is missing; an edit needs the reference of both versions")
		}
	}
	if req.Old.Ref.String() == req.New.Ref.String() {
		return nil, invalid(op, "New.Ref", "is the old one; the service would skip the new text. Use Ref.Version")
	}
	if req.Old.EndUserID == "" {
		req.Old.EndUserID = req.New.EndUserID
	}
	if req.Old.EndUserID != req.New.EndUserID {
		return nil, invalid(op, "Old.EndUserID", "is not the new version's")
	}
	added, err := c.Add(ctx, req.New)
	if err != nil {
		return nil, err
	}
	res := &ReplaceResult{Added: added}
	ids := req.OldIDs
	if len(ids) == 0 {
		old, err := c.Add(ctx, req.Old)
		if err != nil {
			return res, err
		}
		ids = old.MemoryIDs
	}
	keep := map[int64]bool{}
	for _, id := range added.MemoryIDs {
		keep[id] = true
	}
	var gone []int64
	for _, id := range ids {
		if !keep[id] {
			gone = append(gone, id)
		}
	}
	if len(gone) == 0 {
		return res, nil
	}
	res.Forgotten, err = c.Forget(ctx, ForgetRequest{EndUserID: req.New.EndUserID, MemoryIDs: gone, Reason: req.Reason})
	if errors.Is(err, ErrNotFound) {
		return res, nil // an earlier call got that far
	}
	return res, err
}
