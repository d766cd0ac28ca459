package memwrite

import (
	"context"
	"net/http"

	"github.com/memwrite/memwrite-go/internal/api"
)

// DeleteResult is what a deletion of FishMem's records took away.
type DeleteResult struct {
	Deleted   int // a replay tells the first call's number again
	Key       string
	Tries     int
	RequestID string
}

// Delete takes one record away: DELETE /v1/memories/{id}. key names the
// deletion, as an intent of its own: the key that wrote the record is the
// write's, and ErrConflict here.
//
// A second call with the same key and id answers what the first one did. A
// record that was gone before is ErrNotFound.
func (c *Client) Delete(ctx context.Context, key Ref, id string) (*DeleteResult, error) {
	const op = "Delete"
	svc, identity, err := c.forDeletion(op, key, checkID(op, id))
	if err != nil {
		return nil, err
	}
	h, err := api.NewDeleteMemoryRequest(svc.base, id, &api.DeleteMemoryParams{IdempotencyKey: &identity})
	if err != nil {
		return nil, invalid(op, "id", "cannot stand in a path")
	}
	var got struct {
		Deleted *bool `json:"deleted"`
	}
	res, err := svc.deletion(ctx, op, identity, h, decoded(&got, lacksDeletion, func() bool { return got.Deleted != nil && *got.Deleted }))
	if err == nil {
		res.Deleted = 1
	}
	return res, err
}

// DeleteAll takes every record of a scope away: DELETE /v1/memories. key names
// the deletion.
//
// A second call with the same key and scope answers the first one's number and
// spares what was written since. Above 25,000 records the service deletes
// nothing: ErrTooLarge.
func (c *Client) DeleteAll(ctx context.Context, key Ref, scope Scope) (*DeleteResult, error) {
	const op = "DeleteAll"
	svc, identity, err := c.forDeletion(op, key, scope.check(op))
	if err != nil {
		return nil, err
	}
	h, err := api.NewDeleteAllMemoriesRequest(svc.base, &api.DeleteAllMemoriesParams{
		UserID: ptr(scope.UserID), AgentID: ptr(scope.AgentID), RunID: ptr(scope.RunID), IdempotencyKey: &identity,
	})
	if err != nil {
		return nil, invalid(op, "Scope", "cannot stand in a query")
	}
	var got struct {
		Deleted *int `json:"deleted"`
	}
	res, err := svc.deletion(ctx, op, identity, h, decoded(&got, lacksDeletion, func() bool { return got.Deleted != nil }))
	if err == nil {
		res.Deleted = *got.Deleted
	}
	return res, err
}

// forDeletion checks what both deletions need. Without a key a deletion whose
// answer was lost could not be sent again: of one record it would be told
// "not found", and of a scope it would take what came later.
func (c *Client) forDeletion(op string, key Ref, bad error) (*service, string, error) {
	svc, err := c.forFishMem(op)
	if err != nil {
		return nil, "", err
	}
	if bad != nil {
		return nil, "", bad
	}
	identity, err := key.idempotencyKey(op)
	return svc, identity, err
}

const lacksDeletion = "the answer does not say what was deleted"

func (s *service) deletion(ctx context.Context, op, key string, h *http.Request, f form) (*DeleteResult, error) {
	a, err := s.do(ctx, request{op: op, identity: key, http: h, safe: true, form: f})
	if err != nil {
		return nil, err
	}
	return &DeleteResult{Key: key, Tries: a.tries, RequestID: requestID("", "", a.Header)}, nil
}
