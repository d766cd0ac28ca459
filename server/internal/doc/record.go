package doc

import (
	"fmt"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// OfRecord writes a record down, all but whether search knows it.
func OfRecord(r *protocol.Record) ([]byte, error) {
	w := newWriter()
	w.must("id", r.ID)
	w.number("number", r.Number)
	w.must("workspace", r.Workspace)
	w.must("wire", string(r.Wire))
	w.must("task", r.TaskID)
	ofScope(w, &r.Scope)
	w.text("text", r.Text)
	w.text("type", r.Type)
	w.text("key", r.Key)
	w.text("speaker", r.Speaker)
	w.text("occurred_at", r.OccurredAt)
	w.text("event_date", r.EventDate)
	if r.Metadata != nil {
		w.must("metadata", string(r.Metadata))
	}
	w.text("source", r.Source)
	w.text("event_type", r.EventType)
	w.text("session_id", r.SessionID)
	w.texts("tags", r.Tags)
	if r.Importance != 0 {
		w.any("importance", r.Importance)
	}
	w.instant("created", r.CreatedAt)
	w.instant("updated", r.UpdatedAt)
	w.instant("expires", r.ExpiresAt)
	w.yes("forgotten", r.Forgotten)
	w.text("superseded_by", r.SupersededBy)
	return w.end()
}

// Record reads a record back. The error holds nothing of the document.
func Record(doc []byte, projected bool) (protocol.Record, error) {
	out := protocol.Record{Projected: projected}
	if err := read(doc, func(r *reader, name []byte) { toRecord(r, &out, name) }); err != nil {
		return protocol.Record{}, fmt.Errorf("doc: a record cannot be read: %w", err)
	}
	return out, nil
}

func toRecord(r *reader, to *protocol.Record, name []byte) {
	switch string(name) {
	case "id":
		to.ID = r.text()
	case "number":
		to.Number = r.number()
	case "workspace":
		to.Workspace = r.text()
	case "wire":
		to.Wire = protocol.Wire(r.text())
	case "task":
		to.TaskID = r.text()
	case "scope":
		toScope(r, &to.Scope)
	case "text":
		to.Text = r.text()
	case "type":
		to.Type = r.text()
	case "key":
		to.Key = r.text()
	case "speaker":
		to.Speaker = r.text()
	case "occurred_at":
		to.OccurredAt = r.text()
	case "event_date":
		to.EventDate = r.text()
	case "metadata":
		to.Metadata = raw(r.maybe())
	case "source":
		to.Source = r.text()
	case "event_type":
		to.EventType = r.text()
	case "session_id":
		to.SessionID = r.text()
	case "tags":
		to.Tags = r.texts()
	case "importance":
		if f := r.float(); f != nil {
			to.Importance = *f
		}
	case "created":
		to.CreatedAt = r.instant()
	case "updated":
		to.UpdatedAt = r.instant()
	case "expires":
		to.ExpiresAt = r.instant()
	case "forgotten":
		to.Forgotten = r.yes()
	case "superseded_by":
		to.SupersededBy = r.text()
	default:
		r.skip()
	}
}
