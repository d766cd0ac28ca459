package memwrite

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/memwrite/memwrite-go/internal/api"
)

// TurnRequest is one turn of a conversation. Speaker, OccurredAt and Text are
// its identity, for one user, for 30 days: take all three from the stored
// message, never from the clock of the retry.
type TurnRequest struct {
	TenantID   string // empty: WithTenant's, or the first of GET /org/projects
	UserID     string
	Text       string // plain, without a prefix such as "user:"
	Role       string // empty counts as the user's
	Speaker    string
	OccurredAt string // compared as a string: send it byte for byte as stored
	Source     string
	Metadata   json.RawMessage // an object; only scalars survive on facts

	// AllowUnstable sends a turn without Speaker or OccurredAt. Such a turn has
	// no identity of its own, so the same words said twice are one turn.
	AllowUnstable bool
	// SendNonUser sends turns of other roles too, which the service skips.
	SendNonUser bool
}

// ProcessingStatus is what became of a turn. Unknown values are kept as they
// are and count as accepted.
type ProcessingStatus string

// The statuses that are known.
const (
	TurnDistilling     ProcessingStatus = "distilling"            // queued for extraction
	TurnCompleted      ProcessingStatus = "completed"             // extracted before the answer
	TurnReplayed       ProcessingStatus = "skipped_replay"        // the same turn within 30 days
	SkippedNonUser     ProcessingStatus = "skipped_non_user_turn" // only user turns are extracted
	SkippedLowValue    ProcessingStatus = "skipped_low_value"     // no letters, one word, or fillers
	TurnSkippedByQuota ProcessingStatus = "skipped"               // never in a receipt: ErrQuotaExceeded
	TurnFailed         ProcessingStatus = "failed"                // never in a receipt: nothing was saved, ErrServer
)

// Known tells whether this release knows the status.
func (p ProcessingStatus) Known() bool {
	switch p {
	case TurnDistilling, TurnCompleted, TurnReplayed, SkippedNonUser, SkippedLowValue, TurnSkippedByQuota, TurnFailed:
		return true
	}
	return false
}

// TurnReceipt says that a turn was taken, not that a memory exists.
type TurnReceipt struct {
	ProcessingStatus ProcessingStatus
	Status           string
	AlreadyExists    bool
	MemoryID         string // only from older deployments
	TurnRequestID    string // the extraction's id; correlates logs and cannot be asked for
	TenantID         string // the one that was used
	Tries            int    // 0 when no request was needed
	RequestID        string
}

// AddTurn sends one turn to extraction: POST /v1/memory/add_turn. It answers
// before facts are stored; there is nothing to wait for on this wire.
//
// A second call with the same values answers TurnReplayed within 30 days.
// A turn of another role returns SkippedNonUser without a request. Errors:
// ErrInvalidInput for a turn without Speaker or OccurredAt, ErrQuotaExceeded
// when the monthly quota dropped it, ErrServer when extraction could not run:
// keep the turn and send the same values again.
func (c *Client) AddTurn(ctx context.Context, req TurnRequest) (*TurnReceipt, error) {
	const op = "AddTurn"
	svc, err := c.forMemorySync(op)
	if err != nil {
		return nil, err
	}
	if err := checkTurn(op, req); err != nil {
		return nil, err
	}
	if !isUserRole(req.Role) && !req.SendNonUser {
		return &TurnReceipt{ProcessingStatus: SkippedNonUser, Status: "ok", TenantID: req.TenantID}, nil
	}
	tenant := first(req.TenantID, c.tenant)
	if tenant == "" {
		if tenant, err = c.lookUpTenant(ctx, op); err != nil {
			var e *Error
			if errors.As(err, &e) {
				e.Op, e.Identity = op, turnIdentity(req)
			}
			return nil, err
		}
	}
	body, err := encodeBody(op, api.AddTurnRequest{
		TenantID: tenant, UserID: req.UserID, Text: req.Text, Role: ptr(req.Role), Speaker: ptr(req.Speaker),
		OccurredAt: ptr(req.OccurredAt), Source: ptr(req.Source), Metadata: req.Metadata,
	})
	if err != nil {
		return nil, err
	}
	h, err := api.NewAddTurnRequestWithBody(svc.base, &api.AddTurnParams{XProjectID: ptr(c.project)}, "application/json", nil)
	if err != nil {
		return nil, invalid(op, "request", "cannot be built")
	}
	// The replay check covers a turn without speaker or time as well: to the
	// service both are then empty.
	r := request{op: op, identity: turnIdentity(req), http: h, body: body, safe: true, texts: []string{req.Text}}
	var got struct {
		MemoryID         any              `json:"memory_id"`
		Status           string           `json:"status"`
		ProcessingStatus ProcessingStatus `json:"processing_status"`
		AlreadyExists    bool             `json:"already_exists"`
		RequestID        string           `json:"request_id"`
	}
	r.form = decoded(&got, "the answer names no status", func() bool { return got.ProcessingStatus != "" || got.Status != "" })
	a, err := svc.do(ctx, r)
	if err != nil {
		return nil, err
	}
	if got.ProcessingStatus == TurnSkippedByQuota || got.ProcessingStatus == "" && got.Status == "ok" && got.MemoryID == nil {
		return nil, svc.unlike(r, a, KindQuotaExceeded, "the monthly quota dropped the turn; keep it and send the same values later")
	}
	id, _ := got.MemoryID.(string)
	return &TurnReceipt{
		ProcessingStatus: got.ProcessingStatus, Status: got.Status, AlreadyExists: got.AlreadyExists, MemoryID: id,
		TurnRequestID: got.RequestID, TenantID: tenant, Tries: a.tries, RequestID: requestID("", "", a.Header),
	}, nil
}

func checkTurn(op string, req TurnRequest) error {
	if err := firstOf(checkText(op, "Text", req.Text), checkText(op, "UserID", req.UserID), checkObject(op, "Metadata", req.Metadata)); err != nil {
		return err
	}
	for _, f := range []struct{ name, v string }{{"Speaker", req.Speaker}, {"OccurredAt", req.OccurredAt}} {
		if f.v == "" && !req.AllowUnstable {
			return invalid(op, f.name, "is missing; without it the turn cannot be sent again safely (AllowUnstable sends it all the same)")
		}
		if f.v != "" {
			if err := checkText(op, f.name, f.v); err != nil {
				return err
			}
		}
	}
	return nil
}

// turnIdentity stands on errors in place of the text.
func turnIdentity(req TurnRequest) string {
	return req.Speaker + "@" + req.OccurredAt + "#" + textHash(req.Text)[:16]
}

func isUserRole(role string) bool {
	switch strings.ToLower(strings.TrimSpace(role)) {
	case "", "user", "human", "customer", "caller":
		return true
	}
	return false
}
