package protocol

import (
	"encoding/json"
	"time"
)

// Projection is whether search knows the records yet. It never changes
// records, billing or receipts.
type Projection string

const (
	ProjectionNone    Projection = "not_requested"
	ProjectionPending Projection = "pending"
	ProjectionReady   Projection = "ready"
)

// Record is canonical memory, made by its task's plan and by nothing else.
type Record struct {
	ID        string
	Number    int64 // MemorySync's integer id; 0 on FishMem
	Workspace string
	Wire      Wire
	TaskID    string
	Scope     Scope

	Text string
	Type string
	Key  string

	Speaker, OccurredAt string
	EventDate           string
	Metadata            json.RawMessage
	Source              string
	EventType           string
	SessionID           string
	Tags                []string
	Importance          float64

	CreatedAt, UpdatedAt time.Time
	ExpiresAt            time.Time // zero: never
	Projected            bool      // search may find it
	Forgotten            bool      // a tombstone: the id stays, the text is gone
	SupersededBy         string    // of a tombstone: the record that took its place
}

// Live says that a reader may see the record.
func (r *Record) Live(now time.Time) bool {
	return !r.Forgotten && (r.ExpiresAt.IsZero() || now.Before(r.ExpiresAt))
}

// Forget is the tombstone of a record.
func (r Record) Forget(now time.Time) Record {
	return Record{ID: r.ID, Number: r.Number, Workspace: r.Workspace, Wire: r.Wire, TaskID: r.TaskID, Scope: r.Scope,
		CreatedAt: r.CreatedAt, UpdatedAt: now, Forgotten: true}
}

// Supersede is the tombstone of a record whose place another one took.
func (r Record) Supersede(by string, now time.Time) Record {
	out := r.Forget(now)
	out.SupersededBy = by
	return out
}

// records are the rows a plan makes.
func records(t *Task, now time.Time) []Record {
	c := t.Command
	out := make([]Record, 0, len(t.Plan.Mutations))
	importance := 0.5
	if c.Importance != nil {
		importance = *c.Importance
	}
	for _, m := range t.Plan.Mutations {
		r := Record{ID: m.RecordID, Number: m.Number, Workspace: t.Workspace, Wire: t.Kind.Wire(), TaskID: t.ID, Scope: t.Scope,
			Text: m.Fact.Text, Type: m.Fact.Type, Key: m.Fact.Key,
			Speaker: c.Speaker, OccurredAt: c.OccurredAt, EventDate: c.EventDate, Metadata: c.Metadata,
			Source: c.Source, EventType: c.EventType, SessionID: c.SessionID, Tags: c.Tags, Importance: importance,
			CreatedAt: now, UpdatedAt: now}
		if c.TTL > 0 {
			r.ExpiresAt = now.Add(c.TTL)
		}
		out = append(out, r)
	}
	return out
}
