package memwrite

import (
	"context"
	"encoding/json"

	"github.com/memwrite/memwrite-go/internal/api"
)

// MaxBulkItems is how many items one BulkAdd takes.
const MaxBulkItems = 50

// BulkItem is one text of a BulkAdd.
type BulkItem struct {
	Text       string
	EndUserID  string // goes before the request's; empty takes that
	Source     string // at most 64 characters
	EventType  string // at most 64 characters
	Tags       []string
	Importance *float64        // 0 to 1
	Metadata   json.RawMessage // an object
}

// BulkAddRequest is up to MaxBulkItems texts.
type BulkAddRequest struct {
	EndUserID   string
	Items       []BulkItem
	Deduplicate *bool // false switches the near-duplicate filter off
}

// BulkStatus is what became of one item. The set is open.
type BulkStatus string

// The statuses.
const (
	BulkCreated  BulkStatus = "created"
	BulkSkipped  BulkStatus = "skipped"  // nothing worth storing, a duplicate, or no quota: see Reason
	BulkRejected BulkStatus = "rejected" // refused by a rule; the same item can never pass
)

// BulkItemResult is the service's word on one item.
type BulkItemResult struct {
	Index     int        `json:"index"` // of the item in the request
	Status    BulkStatus `json:"status"`
	MemoryIDs []int64    `json:"memory_ids"`
	Reason    string     `json:"reason"` // open
}

// BulkAddResult is one result for each item.
type BulkAddResult struct {
	Created, Skipped, Rejected int
	Items                      []BulkItemResult
	Tries                      int
	RequestID                  string
}

// BulkAdd stores many texts in one call: POST /memory/bulk-add. A nil error
// says that every item has a result, and not that every item was stored.
//
// Nothing of it has an identity: the service cannot tell a second call from a
// first. It is therefore sent once, and after ErrUnknownOutcome any number of
// the items may be there (the verdict is Hold): a queue that may deliver twice
// writes with [Client.Add] and a Ref. Errors: ErrInvalidInput before any request,
// ErrQuotaExceeded also for the silent form, and the rest of [VerdictOf].
func (c *Client) BulkAdd(ctx context.Context, req BulkAddRequest) (*BulkAddResult, error) {
	const op = "BulkAdd"
	svc, err := c.forMemorySync(op)
	if err != nil {
		return nil, err
	}
	r, err := c.bulkRequest(svc, op, req)
	if err != nil {
		return nil, err
	}
	var got struct {
		Status  string           `json:"status"`
		Results []BulkItemResult `json:"results"`
	}
	r.form = decoded(&got, "the answer does not say what became of each item", func() bool {
		return covers(got.Results, len(req.Items)) || (got.Results == nil && got.Status == "ok")
	})
	a, err := svc.do(ctx, r)
	if err != nil {
		return nil, err
	}
	if got.Results == nil {
		return nil, svc.unlike(r, a, KindQuotaExceeded, "the monthly quota dropped the items; none was stored")
	}
	res := &BulkAddResult{Items: got.Results, Tries: a.tries, RequestID: requestID("", "", a.Header)}
	for _, item := range res.Items {
		switch item.Status {
		case BulkCreated:
			res.Created++
		case BulkSkipped:
			res.Skipped++
		case BulkRejected:
			res.Rejected++
		}
	}
	return res, nil
}

// covers tells whether each of n items has one result.
func covers(results []BulkItemResult, n int) bool {
	seen := make([]bool, n)
	for _, r := range results {
		if r.Index < 0 || r.Index >= n || seen[r.Index] {
			return false
		}
		seen[r.Index] = true
	}
	return len(results) == n
}

func (c *Client) bulkRequest(svc *service, op string, req BulkAddRequest) (request, error) {
	if err := checkEndUser(op, req.EndUserID); err != nil {
		return request{}, err
	}
	if n := len(req.Items); n < 1 || n > MaxBulkItems {
		return request{}, invalid(op, "Items", "has "+itoa(n)+" items, the limits are 1 and "+itoa(MaxBulkItems))
	}
	b := api.BulkAddRequest{Deduplicate: req.Deduplicate, Items: make([]api.BulkAddItem, len(req.Items))}
	texts := make([]string, len(req.Items))
	for i, item := range req.Items {
		at := "Items[" + itoa(i) + "]."
		if err := firstOf(
			checkText(op, at+"Text", item.Text),
			checkLength(op, at+"Source", item.Source, maxSource),
			checkLength(op, at+"EventType", item.EventType, maxSource),
			checkObject(op, at+"Metadata", item.Metadata),
		); err != nil {
			return request{}, err
		}
		if v := item.Importance; v != nil && !(*v >= 0 && *v <= 1) {
			return request{}, invalid(op, at+"Importance", "is outside 0 to 1")
		}
		b.Items[i] = api.BulkAddItem{
			Text: item.Text, EndUserID: ptr(item.EndUserID), Source: ptr(item.Source), EventType: ptr(item.EventType),
			Importance: item.Importance, Metadata: item.Metadata,
		}
		if len(item.Tags) > 0 {
			b.Items[i].Tags = &item.Tags
		}
		texts[i] = item.Text
	}
	body, err := encodeBody(op, b)
	if err != nil {
		return request{}, err
	}
	h, err := api.NewBulkAddMemoriesRequestWithBody(svc.base,
		&api.BulkAddMemoriesParams{XEndUserID: req.EndUserID, XProjectID: ptr(c.project)}, "application/json", nil)
	if err != nil {
		return request{}, invalid(op, "request", "cannot be built")
	}
	return request{op: op, http: h, body: body, texts: texts}, nil
}
