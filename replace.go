package memwrite

import (
	"context"
	"errors"
	"slices"
)

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
	// KeptIDs are memories of the old version that were not forgotten. Either
	// another reference made them, or nobody knows which did, and the old version
	// only matched them as a near-duplicate; or the new version matched them.
	// They are other records' too: [Client.Forget] takes their ids if they are
	// to go all the same.
	KeptIDs []int64
}

// Replace adds the new version and then forgets what the old one made. The new
// one comes first, so that stopping between the two leaves one memory too many
// and never one too few; calling again finishes it.
//
// It forgets a memory only when RefField in the memory's metadata is Old's own
// reference, which costs one read for each memory, also with OldIDs: the
// near-duplicate filter answers a write with a memory that another record made.
// Such a memory is kept, and so is one that the service matched the new text
// to; ReplaceResult.KeptIDs names both. When a memory cannot be read, nothing is
// forgotten, and the result beside the error says what was added.
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
	gone, err := c.madeBy(ctx, req.Old, ids, added.MemoryIDs, res)
	if err != nil || len(gone) == 0 {
		return res, err
	}
	res.Forgotten, err = c.Forget(ctx, ForgetRequest{EndUserID: req.New.EndUserID, MemoryIDs: gone, Reason: req.Reason})
	if errors.Is(err, ErrNotFound) {
		return res, nil // an earlier call got that far
	}
	return res, err
}

// madeBy picks the memories that the old version made itself, less those to
// keep. The others go to KeptIDs, and those that are gone nowhere.
func (c *Client) madeBy(ctx context.Context, old AddRequest, ids, keep []int64, res *ReplaceResult) ([]int64, error) {
	var made []int64
	for _, id := range ids {
		if slices.Contains(made, id) || slices.Contains(res.KeptIDs, id) {
			continue
		}
		if slices.Contains(keep, id) {
			res.KeptIDs = append(res.KeptIDs, id)
			continue
		}
		m, err := c.Memory(ctx, old.EndUserID, id)
		switch {
		case errors.Is(err, ErrNotFound): // an earlier call got that far
		case err != nil:
			return nil, err
		case originOf(m.Metadata).Ref == old.Ref.String():
			made = append(made, id)
		default:
			res.KeptIDs = append(res.KeptIDs, id)
		}
	}
	return made, nil
}
