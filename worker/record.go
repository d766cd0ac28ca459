package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/memwrite/memwrite-go"
)

// Record is what one message asks to write: exactly one of Add, Turn and Infer.
type Record struct {
	Add   *memwrite.AddRequest
	Turn  *memwrite.TurnRequest
	Infer *memwrite.InferRequest
	// Verbatim stores Infer's content word for word and without a model.
	Verbatim bool
	// Order is the key whose records are written one after the other. Empty is
	// the end user.
	Order string
}

// Identity is what the record is recognised by when it comes again.
func (r Record) Identity() string {
	switch {
	case r.Add != nil:
		return r.Add.Ref.String()
	case r.Infer != nil:
		return r.Infer.Key.String()
	case r.Turn != nil:
		return r.Turn.Speaker + "@" + r.Turn.OccurredAt
	}
	return ""
}

// EndUser is whose memory it is.
func (r Record) EndUser() string {
	switch {
	case r.Add != nil:
		return r.Add.EndUserID
	case r.Turn != nil:
		return r.Turn.UserID
	case r.Infer != nil:
		s := r.Infer.Scope
		return s.UserID + "/" + s.AgentID + "/" + s.RunID
	}
	return ""
}

func (r Record) order() string {
	if r.Order != "" {
		return r.Order
	}
	return r.EndUser()
}

// check refuses a record that has no identity: it could not be delivered twice.
func (r Record) check() error {
	n := 0
	for _, set := range []bool{r.Add != nil, r.Turn != nil, r.Infer != nil} {
		if set {
			n++
		}
	}
	switch {
	case n != 1:
		return errors.New("a record is exactly one of add, turn, infer and verbatim")
	case r.Add != nil && r.Add.Ref.IsZero(), r.Infer != nil && r.Infer.Key.IsZero():
		return errors.New("the record has no identity; give kind and id, or ref")
	case r.Turn != nil && (r.Turn.Speaker == "" || r.Turn.OccurredAt == ""):
		return errors.New("a turn needs speaker and occurred_at; without them a second delivery is a second turn")
	case r.Add != nil:
		return r.Add.Ref.Err()
	case r.Infer != nil:
		return r.Infer.Key.Err()
	}
	return nil
}

// envelope is the JSON form of a record.
type envelope struct {
	Write   string `json:"write"` // add (the default), turn, infer or verbatim
	Kind    string `json:"kind"`  // with id: the record's own name
	ID      string `json:"id"`
	Version int    `json:"version"` // of an edit
	Ref     string `json:"ref"`     // in place of the three: a reference made elsewhere
	Order   string `json:"order"`

	EndUser string `json:"end_user"` // user_id of infer and verbatim
	AgentID string `json:"agent_id"`
	RunID   string `json:"run_id"`
	Tenant  string `json:"tenant"`

	Text       string             `json:"text"`
	Messages   []memwrite.Message `json:"messages"`
	Role       string             `json:"role"`
	Speaker    string             `json:"speaker"`
	OccurredAt string             `json:"occurred_at"`
	EventDate  string             `json:"event_date"`

	Source      string          `json:"source"`
	EventType   string          `json:"event_type"`
	SessionID   string          `json:"session_id"`
	Tags        []string        `json:"tags"`
	TTLMinutes  *int            `json:"ttl_minutes"`
	Importance  *float64        `json:"importance"`
	Deduplicate *bool           `json:"deduplicate"`
	Metadata    json.RawMessage `json:"metadata"`
}

// Decode reads a record from JSON, the form that `memwrite ingest` reads too:
//
//	{"kind":"note","id":"0001","end_user":"acme","text":"My team ships releases every Thursday."}
//	{"write":"turn","end_user":"sam","speaker":"sam","occurred_at":"2026-06-16T09:30:00Z","text":"…"}
//	{"write":"infer","kind":"note","id":"0101","end_user":"fjord","text":"…"}
//
// write is add, turn, infer or verbatim; without it, add. kind is "record" when
// only id is given; version names an edit; ref takes a reference made elsewhere
// in place of kind, id and version. A field that is not known is a mistake: a
// misspelt version would be another record. Errors never quote the text.
func Decode(data []byte) (Record, error) { return Defaults{}.Decode(data) }

// Defaults are what records leave out that say it nowhere.
type Defaults struct {
	Write   string // add, turn, infer or verbatim
	Kind    string // with id
	EndUser string
}

// Decode is [Decode] with the defaults for the fields a record does not have.
func (def Defaults) Decode(data []byte) (Record, error) {
	if !utf8.Valid(data) {
		return Record{}, errors.New("the record is not valid UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	e := envelope{Write: def.Write, EndUser: def.EndUser}
	if err := dec.Decode(&e); err != nil {
		return Record{}, fmt.Errorf("the JSON is not a record's: %w", plain(err))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Record{}, errors.New("the record has something behind its JSON")
	}
	if e.Kind == "" && e.ID != "" {
		e.Kind = def.Kind
	}
	r, err := e.record()
	if err != nil {
		return Record{}, err
	}
	return r, r.check()
}

// plain keeps a decoder's words that name positions, fields and types.
func plain(err error) error {
	var syntax *json.SyntaxError
	var shape *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("syntax error at byte %d", syntax.Offset)
	case errors.As(err, &shape):
		return fmt.Errorf("%s is a %s", shape.Field, shape.Value)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it ends too early")
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok && len(name) <= 64 {
		return errors.New("there is no field " + name)
	}
	return errors.New("it has a field that is not one of a record")
}

func (e envelope) record() (Record, error) {
	ref, err := e.ref()
	if err != nil {
		return Record{}, err
	}
	switch e.Write {
	case "", "add":
		return Record{Order: e.Order, Add: &memwrite.AddRequest{
			Text: e.Text, EndUserID: e.EndUser, Ref: ref, Source: e.Source, EventType: e.EventType, SessionID: e.SessionID,
			Tags: e.Tags, TTLMinutes: e.TTLMinutes, Importance: e.Importance, Metadata: e.Metadata, Deduplicate: e.Deduplicate,
		}}, nil
	case "turn":
		return Record{Order: e.Order, Turn: &memwrite.TurnRequest{
			TenantID: e.Tenant, UserID: e.EndUser, Text: e.Text, Role: e.Role, Speaker: e.Speaker,
			OccurredAt: e.OccurredAt, Source: e.Source, Metadata: e.Metadata,
		}}, nil
	case "infer", "verbatim":
		return Record{Order: e.Order, Verbatim: e.Write == "verbatim", Infer: &memwrite.InferRequest{
			Key: ref, Scope: memwrite.Scope{UserID: e.EndUser, AgentID: e.AgentID, RunID: e.RunID},
			Content: e.Text, Messages: e.Messages, EventDate: e.EventDate, Metadata: e.Metadata,
		}}, nil
	}
	return Record{}, errors.New("write is not one of add, turn, infer and verbatim")
}

func (e envelope) ref() (memwrite.Ref, error) {
	switch {
	case e.Ref != "" && (e.Kind != "" || e.ID != "" || e.Version != 0):
		return memwrite.Ref{}, errors.New("ref stands beside kind, id or version; one of the two names the record")
	case e.Ref != "":
		return memwrite.RefFromString(e.Ref), nil
	case e.ID == "" && e.Kind == "" && e.Version == 0:
		return memwrite.Ref{}, nil
	case e.ID == "":
		return memwrite.Ref{}, errors.New("kind or version is given and id is not")
	}
	kind := e.Kind
	if kind == "" {
		kind = "record"
	}
	ref := memwrite.NewRef(kind, e.ID)
	if e.Version != 0 {
		ref = ref.Version(e.Version)
	}
	return ref, nil
}
