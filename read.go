package memwrite

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/memwrite/memwrite-go/internal/api"
)

// Memory reads one memory of an end user: GET /memory/{id}. A memory that is
// missing, and one of somebody else, are both ErrNotFound.
func (c *Client) Memory(ctx context.Context, endUserID string, id int64) (*Memory, error) {
	const op = "Memory"
	svc, err := c.forMemorySync(op)
	if err != nil {
		return nil, err
	}
	if err := checkEndUser(op, endUserID); err != nil {
		return nil, err
	}
	h, err := api.NewGetMemoryRequest(svc.base, id, &api.GetMemoryParams{XEndUserID: endUserID, XProjectID: ptr(c.project)})
	if err != nil {
		return nil, invalid(op, "id", "cannot stand in a path")
	}
	m := new(Memory)
	r := request{op: op, http: h, safe: true}
	r.form = decoded(m, "the answer is not the memory that was asked for", func() bool { return m.ID == id && id != 0 })
	if _, err := svc.do(ctx, r); err != nil {
		return nil, err
	}
	return m, nil
}

// QueryRequest asks for the memories of one end user that fit a question.
type QueryRequest struct {
	EndUserID  string
	Query      string   // the service embeds its first 8,000 characters
	K          int      // 1 to 50, clamped by the service; 0 leaves its default of 5
	Tags       []string // any of them
	Source     string
	MemoryType string
	Since      string // ISO 8601
	Until      string
	SessionID  string
}

// Query asks MemorySync: POST /memory/query. Best first.
func (c *Client) Query(ctx context.Context, req QueryRequest) ([]Memory, error) {
	const op = "Query"
	svc, err := c.forMemorySync(op)
	if err != nil {
		return nil, err
	}
	if err := firstOf(checkEndUser(op, req.EndUserID), checkText(op, "Query", req.Query)); err != nil {
		return nil, err
	}
	b := api.QueryMemoryRequest{Query: req.Query, SessionID: ptr(req.SessionID)}
	if req.K != 0 {
		b.K = &req.K
	}
	f := api.QueryFilters{Source: ptr(req.Source), MemoryType: ptr(req.MemoryType), Since: ptr(req.Since), Until: ptr(req.Until)}
	if len(req.Tags) > 0 {
		f.Tags = &req.Tags
	}
	if f != (api.QueryFilters{}) {
		b.Filters = &f
	}
	body, err := encodeBody(op, b)
	if err != nil {
		return nil, err
	}
	h, err := api.NewQueryMemoriesRequestWithBody(svc.base,
		&api.QueryMemoriesParams{XEndUserID: req.EndUserID, XProjectID: ptr(c.project)}, "application/json", nil)
	if err != nil {
		return nil, invalid(op, "request", "cannot be built")
	}
	var got struct {
		Memories *[]Memory `json:"memories"`
	}
	r := request{op: op, http: h, body: body, safe: true, texts: []string{req.Query}}
	return readList(ctx, svc, r, &got, func() *[]Memory { return got.Memories })
}

// SearchRequest asks for the records of one scope that fit a question.
type SearchRequest struct {
	Scope      Scope
	Query      string
	Limit      int // 1 to 50; 0 leaves the service's default of 10
	MemoryType string
	Mode       string   // hybrid, the default; recent, important or typed list the scope instead of ranking it
	Strategy   string   // of the hybrid mode: balanced, precision, recall or auto
	SortBy     string   // recent, importance, most_accessed or last_accessed
	MinScore   *float64 // 0 to 1
	// Filters is an object that is sent as it is: metadata values that must be
	// equal, or an expression of conditions under and, or and not.
	Filters json.RawMessage
}

// Search asks FishMem: POST /v1/memories/search. It costs a credit.
func (c *Client) Search(ctx context.Context, req SearchRequest) ([]Record, error) {
	const op = "Search"
	svc, err := c.forFishMem(op)
	if err != nil {
		return nil, err
	}
	if err := firstOf(req.Scope.check(op), checkText(op, "Query", req.Query), checkObject(op, "Filters", req.Filters)); err != nil {
		return nil, err
	}
	b := api.SearchRequest{
		Query: req.Query, UserID: ptr(req.Scope.UserID), AgentID: ptr(req.Scope.AgentID), RunID: ptr(req.Scope.RunID),
		MinScore: req.MinScore, Filters: req.Filters, Mode: ptr(api.SearchRequestMode(req.Mode)),
		SearchStrategy: ptr(api.SearchRequestSearchStrategy(req.Strategy)), SortBy: ptr(api.SearchRequestSortBy(req.SortBy)),
		MemoryType: ptr(api.SearchRequestMemoryType(req.MemoryType)),
	}
	if req.Limit != 0 {
		b.Limit = &req.Limit
	}
	body, err := encodeBody(op, b)
	if err != nil {
		return nil, err
	}
	h, err := api.NewSearchMemoriesRequestWithBody(svc.base, "application/json", nil)
	if err != nil {
		return nil, invalid(op, "request", "cannot be built")
	}
	var got struct {
		Results *[]Record `json:"results"`
	}
	r := request{op: op, http: h, body: body, safe: true, texts: []string{req.Query, string(req.Filters)}}
	return readList(ctx, svc, r, &got, func() *[]Record { return got.Results })
}

// Record reads one record of FishMem: GET /v1/memories/{id}.
func (c *Client) Record(ctx context.Context, id string) (*Record, error) {
	const op = "Record"
	svc, err := c.forFishMem(op)
	if err != nil {
		return nil, err
	}
	if err := checkID(op, id); err != nil {
		return nil, err
	}
	h, err := api.NewGetFishMemoryRequest(svc.base, id)
	if err != nil {
		return nil, invalid(op, "id", "cannot stand in a path")
	}
	rec := new(Record)
	r := request{op: op, identity: id, http: h, safe: true}
	r.form = decoded(rec, "the answer is not the record that was asked for", func() bool { return rec.ID == id })
	if _, err := svc.do(ctx, r); err != nil {
		return nil, err
	}
	return rec, nil
}

// Memories walks over all records of a scope, newest first: GET /v1/memories.
// It ends after the first error.
func (c *Client) Memories(ctx context.Context, scope Scope) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		cursor, limit, seen := "", 100, cursors{}
		for {
			page, next, err := c.recordPage(ctx, scope, cursor, limit)
			if err != nil {
				yield(Record{}, err)
				return
			}
			for _, m := range page {
				if !yield(m, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			if err := seen.again("Memories", next); err != nil {
				yield(Record{}, err)
				return
			}
			cursor = next
		}
	}
}

func (c *Client) recordPage(ctx context.Context, scope Scope, cursor string, limit int) ([]Record, string, error) {
	const op = "Memories"
	svc, err := c.forFishMem(op)
	if err != nil {
		return nil, "", err
	}
	if err := scope.check(op); err != nil {
		return nil, "", err
	}
	h, err := api.NewListMemoriesRequest(svc.base, &api.ListMemoriesParams{
		UserID: ptr(scope.UserID), AgentID: ptr(scope.AgentID), RunID: ptr(scope.RunID), Cursor: ptr(cursor), Limit: &limit,
	})
	if err != nil {
		return nil, "", invalid(op, "Scope", "cannot stand in a query")
	}
	var got struct {
		Results *[]Record `json:"results"`
		Next    string    `json:"next_cursor"`
	}
	list, err := readList(ctx, svc, request{op: op, http: h, safe: true}, &got, func() *[]Record { return got.Results })
	return list, got.Next, err
}

// readList sends r and decodes into v, from which list then picks what must be
// there. An answer without it is not this operation's.
func readList[T, V any](ctx context.Context, svc *service, r request, v *V, list func() *[]T) ([]T, error) {
	r.form = decoded(v, "the answer has no list", func() bool { return list() != nil })
	if _, err := svc.do(ctx, r); err != nil {
		return nil, err
	}
	return *list(), nil
}
