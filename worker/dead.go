package worker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/memwrite/memwrite-go"
)

// DeadLetter is a record that cannot pass, with why, and with all that is
// needed to mend it and send it again. It holds the record and so the memory's
// text: keep it where the queue's own messages may be kept.
type DeadLetter struct {
	// ID is made from the record's bytes: a message that is delivered twice
	// gives the same dead letter twice.
	ID       string    `json:"id"`
	At       time.Time `json:"at"`
	Source   string    `json:"source,omitempty"`  // where the message came from, in the broker's terms
	Attempt  int       `json:"attempt,omitempty"` // of the broker's deliveries
	Identity string    `json:"identity,omitempty"`

	Reason       string `json:"reason"`         // what it means and what helps
	Kind         string `json:"kind,omitempty"` // memwrite.Kind in words
	Field        string `json:"field,omitempty"`
	Status       int    `json:"status,omitempty"`
	Code         string `json:"code,omitempty"`
	Message      string `json:"message,omitempty"`
	RequestID    string `json:"request_id,omitempty"`
	EventID      string `json:"event_id,omitempty"`
	FailureClass string `json:"failure_class,omitempty"`
	Redrives     int    `json:"redrives,omitempty"`

	Record json.RawMessage `json:"record,omitempty"` // as it was delivered, when it is JSON
	Raw    []byte          `json:"raw,omitempty"`    // as it was delivered, when it is not
}

// Data is the record as it was delivered.
func (d DeadLetter) Data() []byte {
	if d.Raw != nil {
		return d.Raw
	}
	return d.Record
}

func deadLetter(d Delivery, identity string, at time.Time, reason string, err error) *DeadLetter {
	sum := sha256.Sum256(d.Data)
	out := &DeadLetter{
		ID: hex.EncodeToString(sum[:16]), At: at.UTC(), Source: d.Source, Attempt: d.Attempt, Identity: identity, Reason: reason,
	}
	// JSON that is written anew keeps its values and not its bytes; what is not
	// valid UTF-8 would not even keep those.
	if json.Valid(d.Data) && utf8.Valid(d.Data) {
		out.Record = append(json.RawMessage(nil), d.Data...)
	} else {
		out.Raw = append([]byte{}, d.Data...)
	}
	var e *memwrite.Error
	if !errors.As(err, &e) {
		if err != nil {
			out.Message = err.Error()
		}
		return out
	}
	out.Kind, out.Field, out.Status, out.Code = e.Kind.String(), e.Field, e.Status, e.Code
	out.Message, out.RequestID = e.Message, e.RequestID
	if e.Receipt != nil {
		out.EventID = e.Receipt.EventID
	}
	if e.Event != nil {
		out.EventID, out.FailureClass = e.Event.ID, string(e.Event.FailureClass)
	}
	return out
}
