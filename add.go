package memwrite

import (
	"context"
	"encoding/json"
	"net/http"
)

// HashField is where Add leaves the SHA-256 of the text, in hex, in a memory's
// metadata. The service swallows another text under a known client_ref without
// a word; this is how it can be told afterwards.
const HashField = "memwrite_text_sha256"

// RefField is where Add leaves the client_ref, beside HashField. A near-duplicate
// is answered with the memory that another reference made, and the hash on that
// one says nothing about this text.
const RefField = "memwrite_client_ref"

// AddRequest is one fact for one end user.
type AddRequest struct {
	Text      string // the service wants 10 characters or more
	EndUserID string
	// Ref is the record's identity, sent as client_ref: at most 128 characters.
	// The zero Ref sends none, and the write then goes out once, without retries.
	Ref         Ref
	Source      string // at most 64 characters
	EventType   string // at most 64 characters
	SessionID   string
	Tags        []string
	TTLMinutes  *int            // at least 1
	Importance  *float64        // 0 to 1
	Metadata    json.RawMessage // an object; Add puts HashField and RefField into it
	Deduplicate *bool           // false switches the near-duplicate filter off
	VerifyText  bool            // WithVerifyText for this call alone
}

// AddOutcome is how an Add ended.
type AddOutcome string

// The outcomes. All of them are definite answers, and come with a nil error.
const (
	Stored          AddOutcome = "stored"           // AddResult.Memory is what was made, or what a near-duplicate matched: see Matched
	AlreadyIngested AddOutcome = "already_ingested" // the reference is known; nothing was written now
	Skipped         AddOutcome = "skipped"          // nothing worth storing; see AddResult.Reason
)

// TextVerification says whether an already ingested reference is of this text.
type TextVerification string

// The verifications.
const (
	NotVerified   TextVerification = ""          // not asked for, or not needed
	TextMatches   TextVerification = "matches"   // the memory carries this text's hash
	TextUnknown   TextVerification = "unknown"   // no id, no hash, another reference's memory, or one that cannot be read
	TextDifferent TextVerification = "different" // comes with ErrRefReused
)

// AddResult is the service's answer to Add.
type AddResult struct {
	Outcome   AddOutcome
	Memory    *Memory // for Stored: the first memory, even if several were made
	MemoryIDs []int64 // Stored: the memory's; AlreadyIngested: the first write's, which may be none
	Reason    string  // Skipped: the service's own word, open
	Ref       Ref
	// Matched tells that the near-duplicate filter took this text for one it has:
	// nothing was made, and Memory is another write's. It is told by the memory's
	// metadata, so false where an answer carries none. For AlreadyIngested it is
	// known only under WithVerifyText.
	Matched bool
	// Owner is the client_ref that made the memory, as RefField in its metadata
	// says; empty where that is not known.
	Owner     string
	Tries     int
	RequestID string
	Verified  TextVerification
	VerifyErr error // why the memory could not be read, where Verified is TextUnknown for that
}

// Add writes one fact: POST /memory/add. The service extracts before it
// answers, so a call can take seconds.
//
// A second call with the same Ref answers AlreadyIngested and writes nothing,
// also when the text is another one: name an edit with [Ref.Version].
// Errors: ErrInvalidInput before any request; ErrQuotaExceeded also for the
// silent form, a 200 that stored nothing; ErrRefReused under WithVerifyText;
// and the rest of the table at [VerdictOf].
func (c *Client) Add(ctx context.Context, req AddRequest) (*AddResult, error) {
	const op = "Add"
	svc, err := c.forMemorySync(op)
	if err != nil {
		return nil, err
	}
	r, err := c.addRequest(svc, req)
	if err != nil {
		return nil, err
	}
	var got addAnswer
	r.form = decodedBy(got.decode, "the answer names neither a memory nor an outcome", func() bool {
		return got.ID != nil || got.MemoryID != nil || got.Status != ""
	})
	a, err := svc.do(ctx, r)
	if err != nil {
		return nil, err
	}
	res := &AddResult{Ref: req.Ref, Tries: a.tries, RequestID: requestID("", "", a.Header)}
	id := got.ID
	if id == nil {
		id = got.MemoryID
	}
	switch {
	case id != nil: // the order of these cases is the wire's
		got.Memory.ID = *id
		res.Outcome, res.Memory, res.MemoryIDs = Stored, &got.Memory, []int64{*id}
		res.Owner, res.Matched = originOf(got.Metadata).of(req)
	case got.Status == "skipped" && got.Reason == "already_ingested":
		res.Outcome, res.Reason, res.MemoryIDs = AlreadyIngested, got.Reason, got.MemoryIDs
		if c.verifyText || req.VerifyText {
			return c.verify(ctx, req, res)
		}
	case got.Status == "skipped":
		res.Outcome, res.Reason = Skipped, got.Reason
	case got.Status == "ok":
		return nil, svc.unlike(r, a, KindQuotaExceeded, "the monthly quota dropped the write; it was not stored and the reference stays free")
	default:
		return nil, svc.unlike(r, a, KindUnknownOutcome, "the answer names an outcome that is not known")
	}
	return res, nil
}

// addAnswer is every 2xx of /memory/add in one shape. Its own fields go before
// the memory's of the same name.
type addAnswer struct {
	Memory
	ID        *int64  `json:"id"`
	MemoryID  *int64  `json:"memory_id"` // older deployments
	Status    string  `json:"status"`
	Reason    string  `json:"reason"`
	MemoryIDs []int64 `json:"memory_ids"`
}

// decode is json.Unmarshal into a, which is emptied before.
func (a *addAnswer) decode(body []byte) error {
	*a = addAnswer{}
	return decodeInto(body, a, (*addAnswer).set)
}

func (a *addAnswer) set(name, value []byte) bool {
	switch string(name) {
	case "id":
		return setOrNone(&a.ID, value, setInt)
	case "memory_id":
		return setOrNone(&a.MemoryID, value, setInt)
	case "status":
		return setText(&a.Status, value)
	case "reason":
		return setText(&a.Reason, value)
	case "memory_ids":
		return false
	}
	return a.Memory.set(name, value)
}

func (c *Client) addRequest(svc *service, req AddRequest) (request, error) {
	const op = "Add"
	if err := checkText(op, "Text", req.Text); err != nil {
		return request{}, err
	}
	ref, err := req.Ref.clientRef(op)
	if err != nil {
		return request{}, err
	}
	if err := firstOf(
		checkEndUser(op, req.EndUserID),
		checkLength(op, "Source", req.Source, maxSource),
		checkLength(op, "EventType", req.EventType, maxSource),
		checkObject(op, "Metadata", req.Metadata),
	); err != nil {
		return request{}, err
	}
	if req.TTLMinutes != nil && *req.TTLMinutes < 1 {
		return request{}, invalid(op, "TTLMinutes", "is below 1")
	}
	if i := req.Importance; i != nil && !(*i >= 0 && *i <= 1) {
		return request{}, invalid(op, "Importance", "is outside 0 to 1")
	}
	body, err := addBody(op, ref, req)
	if err != nil {
		return request{}, err
	}
	// The generated builder parses the base URL three times for each call.
	h := http.Header{"Content-Type": jsonType, "X-End-User-Id": {req.EndUserID}}
	if c.project != "" {
		h["X-Project-Id"] = []string{c.project}
	}
	return request{op: op, identity: ref, to: svc.addURL, header: h, body: body, safe: ref != "", texts: []string{req.Text}}, nil
}

// verify reads an already ingested memory back. What cannot be told is
// TextUnknown and no error: the write itself had a definite answer.
func (c *Client) verify(ctx context.Context, req AddRequest, res *AddResult) (*AddResult, error) {
	res.Verified = TextUnknown
	if len(res.MemoryIDs) == 0 {
		return res, nil
	}
	m, err := c.Memory(ctx, req.EndUserID, res.MemoryIDs[0])
	if err != nil {
		res.VerifyErr = err
		return res, nil
	}
	made := originOf(m.Metadata)
	res.Owner, res.Matched = made.of(req)
	if made.Hash == "" {
		return res, nil
	}
	if made.Hash == textHash(req.Text) {
		res.Verified = TextMatches
		return res, nil
	}
	if made.Ref != req.Ref.String() {
		return res, nil // made by another record; this one's text was only close to it
	}
	res.Verified = TextDifferent
	return res, &Error{
		Op: "Add", Kind: KindRefReused, Identity: req.Ref.String(), Tries: res.Tries, RequestID: res.RequestID,
		Message: "memory " + itoa(int(res.MemoryIDs[0])) + " was made from another text; this one was not stored. Name the edit with Ref.Version",
	}
}

func checkEndUser(op, id string) error {
	if id == "" {
		return invalid(op, "EndUserID", "is missing; it says whose memory this is")
	}
	if err := checkHeader(op, "EndUserID", id); err != nil {
		return err
	}
	return nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
