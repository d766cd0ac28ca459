package doc

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

type record struct {
	ID         string        `json:"id"`
	Number     int64         `json:"number,omitempty"`
	Workspace  string        `json:"workspace"`
	Wire       protocol.Wire `json:"wire"`
	Task       string        `json:"task"`
	Scope      scope         `json:"scope"`
	Text       string        `json:"text,omitempty"`
	Type       string        `json:"type,omitempty"`
	Key        string        `json:"key,omitempty"`
	Speaker    string        `json:"speaker,omitempty"`
	OccurredAt string        `json:"occurred_at,omitempty"`
	EventDate  string        `json:"event_date,omitempty"`
	Metadata   *string       `json:"metadata,omitempty"`
	Source     string        `json:"source,omitempty"`
	EventType  string        `json:"event_type,omitempty"`
	SessionID  string        `json:"session_id,omitempty"`
	Tags       []string      `json:"tags,omitzero"`
	Importance float64       `json:"importance,omitempty"`
	Created    time.Time     `json:"created,omitzero"`
	Updated    time.Time     `json:"updated,omitzero"`
	Expires    time.Time     `json:"expires,omitzero"`
	Forgotten  bool          `json:"forgotten,omitempty"`
	Superseded string        `json:"superseded_by,omitempty"`
}

// OfRecord writes a record down, all but whether search knows it.
func OfRecord(r *protocol.Record) ([]byte, error) {
	return json.Marshal(&record{
		ID: r.ID, Number: r.Number, Workspace: r.Workspace, Wire: r.Wire, Task: r.TaskID, Scope: scope(r.Scope),
		Text: r.Text, Type: r.Type, Key: r.Key, Speaker: r.Speaker, OccurredAt: r.OccurredAt, EventDate: r.EventDate, Metadata: ofRaw(r.Metadata),
		Source: r.Source, EventType: r.EventType, SessionID: r.SessionID, Tags: r.Tags, Importance: r.Importance,
		Created: instant(r.CreatedAt), Updated: instant(r.UpdatedAt), Expires: instant(r.ExpiresAt), Forgotten: r.Forgotten, Superseded: r.SupersededBy,
	})
}

// Record reads a record back. The error holds nothing of the document.
func Record(doc []byte, projected bool) (protocol.Record, error) {
	var d record
	if err := json.Unmarshal(doc, &d); err != nil {
		return protocol.Record{}, fmt.Errorf("doc: a record cannot be read: %T", err)
	}
	return protocol.Record{
		ID: d.ID, Number: d.Number, Workspace: d.Workspace, Wire: d.Wire, TaskID: d.Task, Scope: protocol.Scope(d.Scope),
		Text: d.Text, Type: d.Type, Key: d.Key, Speaker: d.Speaker, OccurredAt: d.OccurredAt, EventDate: d.EventDate, Metadata: raw(d.Metadata),
		Source: d.Source, EventType: d.EventType, SessionID: d.SessionID, Tags: d.Tags, Importance: d.Importance,
		CreatedAt: d.Created, UpdatedAt: d.Updated, ExpiresAt: d.Expires, Forgotten: d.Forgotten, SupersededBy: d.Superseded, Projected: projected,
	}, nil
}

type workspace struct {
	ID              string `json:"id"`
	AddsPerMonth    int64  `json:"adds_per_month"`
	StrictQuota     bool   `json:"strict_quota,omitempty"`
	Credits         int64  `json:"credits"`
	InvalidAttempts int    `json:"invalid_output_attempts,omitempty"`
}

// OfWorkspace writes a workspace down.
func OfWorkspace(w protocol.Workspace) ([]byte, error) {
	return json.Marshal(workspace{w.ID, w.AddsPerMonth, w.StrictQuota, w.Credits, w.Extraction.InvalidOutputAttempts})
}

// Workspace reads a workspace back.
func Workspace(doc []byte) (protocol.Workspace, error) {
	var d workspace
	if err := json.Unmarshal(doc, &d); err != nil {
		return protocol.Workspace{}, fmt.Errorf("doc: a workspace cannot be read: %T", err)
	}
	return protocol.Workspace{ID: d.ID, AddsPerMonth: d.AddsPerMonth, StrictQuota: d.StrictQuota, Credits: d.Credits,
		Extraction: protocol.ExtractionPolicy{InvalidOutputAttempts: d.InvalidAttempts}}, nil
}
