package memwrite

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/memwrite/memwrite-go/internal/api"
)

// InferRequest is one FishMem write. Key names the intent: the same Key with
// another command is ErrConflict. The command is everything else here, and goes
// out with nothing added, so that an upgrade of this package never turns a
// redelivery into a conflict.
type InferRequest struct {
	Key       Ref
	Scope     Scope
	Content   string    // either this
	Messages  []Message // or these, at most 500
	EventDate string    // UTC with seconds and a final Z; sent as it is
	Metadata  json.RawMessage
}

// Message is one message of a conversation.
type Message struct {
	Role    string // user, assistant, system or tool
	Content string
}

// Receipt says that a write was accepted: it is not a memory yet. Store it to
// go on waiting after a restart with [Client.Resume].
type Receipt struct {
	EventID   string      `json:"event_id"`
	Status    EventStatus `json:"status"`
	Key       string      `json:"key,omitempty"`
	Tries     int         `json:"-"`
	RequestID string      `json:"-"`
}

// AddAsync hands a write to extraction: POST /v1/memories. The receipt's event
// says later what became of it.
//
// A second call with the same Key and command answers the same event with its
// present status, SUCCEEDED and FAILED included, and runs nothing: a FAILED one
// needs Redrive. Errors: ErrInvalidInput without a Key, ErrConflict for another
// command under it, ErrInsufficientCredits, and the rest of [VerdictOf].
func (c *Client) AddAsync(ctx context.Context, req InferRequest) (*Receipt, error) {
	return c.addAsync(ctx, "AddAsync", req)
}

func (c *Client) addAsync(ctx context.Context, op string, req InferRequest) (*Receipt, error) {
	svc, err := c.forFishMem(op)
	if err != nil {
		return nil, err
	}
	r, err := inferRequest(svc, op, req, true)
	if err != nil {
		return nil, err
	}
	var got struct {
		EventID string      `json:"event_id"`
		Status  EventStatus `json:"status"`
	}
	r.form = decoded(&got, "the answer names no event", func() bool { return got.EventID != "" })
	a, err := svc.do(ctx, r)
	if err != nil {
		return nil, err
	}
	return &Receipt{EventID: got.EventID, Status: got.Status, Key: r.identity, Tries: a.tries, RequestID: requestID("", "", a.Header)}, nil
}

// VerbatimResult is what AddVerbatim stored.
type VerbatimResult struct {
	Records   []WriteResult
	Key       string
	Tries     int
	RequestID string
}

// AddVerbatim stores Content as one record, or each of Messages as one, without
// a model and before it answers: POST /v1/memories with infer false.
//
// A second call with the same Key and command answers the same records. Errors
// are AddAsync's, and ErrInProgress while a first call is still being repaired.
func (c *Client) AddVerbatim(ctx context.Context, req InferRequest) (*VerbatimResult, error) {
	const op = "AddVerbatim"
	svc, err := c.forFishMem(op)
	if err != nil {
		return nil, err
	}
	r, err := inferRequest(svc, op, req, false)
	if err != nil {
		return nil, err
	}
	var got struct {
		Results *[]WriteResult `json:"results"`
	}
	r.form = decoded(&got, "the answer has no results", func() bool { return got.Results != nil })
	a, err := svc.do(ctx, r)
	if err != nil {
		return nil, err
	}
	return &VerbatimResult{Records: *got.Results, Key: r.identity, Tries: a.tries, RequestID: requestID("", "", a.Header)}, nil
}

// AddAndWait is AddAsync and then WaitForEvent. A receipt that is
// already at its end costs one read, for what became of it, and no wait. An error after the acceptance carries the
// receipt; ErrEventFailed means no memory was committed, and Redrive runs it
// again, which sending the key again would not.
func (c *Client) AddAndWait(ctx context.Context, req InferRequest, opts ...WaitOption) (*Event, error) {
	const op = "AddAndWait"
	receipt, err := c.addAsync(ctx, op, req)
	if err != nil {
		return nil, err
	}
	ev, err := c.wait(ctx, op, *receipt, opts)
	var e *Error
	if errors.As(err, &e) {
		if e.Receipt == nil {
			e.Receipt = receipt
		}
		if e.Event != nil { // whose words may quote what was sent
			c.fishMem.quietEvent(e.Event, req.texts()...)
			if e.Kind == KindEventFailed {
				e.Code = clip(oneLine(e.Event.ErrorCode), 100)
			}
		}
	}
	return ev, err
}

// texts are what a service may quote.
func (r *InferRequest) texts() []string {
	all := []string{r.Content}
	for _, m := range r.Messages {
		all = append(all, m.Content)
	}
	return all
}

func inferRequest(svc *service, op string, req InferRequest, infer bool) (request, error) {
	key, err := req.Key.idempotencyKey(op)
	if err != nil {
		return request{}, err
	}
	texts := make([]string, 0, 1+len(req.Messages))
	if err := firstOf(req.Scope.check(op), checkObject(op, "Metadata", req.Metadata)); err != nil {
		return request{}, err
	}
	b := api.CreateMemoriesRequest{
		UserID: ptr(req.Scope.UserID), AgentID: ptr(req.Scope.AgentID), RunID: ptr(req.Scope.RunID),
		Infer: &infer, EventDate: ptr(req.EventDate), Metadata: req.Metadata,
	}
	switch {
	case req.Content != "" && len(req.Messages) > 0:
		return request{}, invalid(op, "Content", "is set beside Messages; the service would run only one of them")
	case len(req.Messages) > MaxMessages:
		return request{}, invalid(op, "Messages", "has "+itoa(len(req.Messages))+" messages, the limit is "+itoa(MaxMessages))
	case len(req.Messages) > 0:
		all := make([]api.Message, len(req.Messages))
		for i, m := range req.Messages {
			if err := checkText(op, "Messages["+itoa(i)+"].Content", m.Content); err != nil {
				return request{}, err
			}
			switch m.Role {
			case "user", "assistant", "system", "tool":
			default:
				return request{}, invalid(op, "Messages["+itoa(i)+"].Role", "is not one of user, assistant, system and tool")
			}
			all[i] = api.Message{Role: api.MessageRole(m.Role), Content: m.Content}
			texts = append(texts, m.Content)
		}
		b.Messages = &all
	default:
		if err := checkText(op, "Content", req.Content); err != nil {
			return request{}, err
		}
		b.Content = &req.Content
		texts = append(texts, req.Content)
	}
	body, err := encodeBody(op, b)
	if err != nil {
		return request{}, err
	}
	if len(body) > MaxCommandBytes {
		e := invalid(op, "request", "has "+itoa(len(body))+" bytes as JSON, the limit is "+itoa(MaxCommandBytes))
		e.Kind = KindTooLarge
		return request{}, e
	}
	h, err := api.NewCreateMemoriesRequestWithBody(svc.base, &api.CreateMemoriesParams{IdempotencyKey: &key}, "application/json", nil)
	if err != nil {
		return request{}, invalid(op, "request", "cannot be built")
	}
	return request{op: op, identity: key, http: h, body: body, safe: true, texts: texts}, nil
}
