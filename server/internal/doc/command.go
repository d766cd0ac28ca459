package doc

import (
	"encoding/json"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

func ofCommand(w *writer, c *protocol.Command) {
	w.must("kind", string(c.Kind))
	ofScope(w, &c.Scope)
	w.text("key", c.Key)
	w.text("client_ref", c.ClientRef)
	w.text("target", c.Target)
	w.text("text", c.Text)
	if c.Messages != nil {
		w.any("messages", c.Messages)
	}
	w.text("speaker", c.Speaker)
	w.text("occurred_at", c.OccurredAt)
	w.text("role", c.Role)
	w.text("event_date", c.EventDate)
	if c.Metadata != nil { // as it was sent, byte for byte
		w.must("metadata", string(c.Metadata))
	}
	w.text("source", c.Source)
	w.text("event_type", c.EventType)
	w.text("session_id", c.SessionID)
	w.texts("tags", c.Tags)
	w.number("ttl", int64(c.TTL))
	if c.Importance != nil {
		w.any("importance", *c.Importance)
	}
	w.yes("keep_similar", c.KeepSimilar)
	w.text("trace", c.Trace)
}

func toCommand(r *reader, to **protocol.Command) {
	if r.Null() {
		return
	}
	c := &protocol.Command{}
	*to = c
	r.object(func(name []byte) {
		switch string(name) {
		case "kind":
			c.Kind = protocol.Kind(r.text())
		case "scope":
			toScope(r, &c.Scope)
		case "key":
			c.Key = r.text()
		case "client_ref":
			c.ClientRef = r.text()
		case "target":
			c.Target = r.text()
		case "text":
			c.Text = r.text()
		case "messages":
			r.any(&c.Messages)
		case "speaker":
			c.Speaker = r.text()
		case "occurred_at":
			c.OccurredAt = r.text()
		case "role":
			c.Role = r.text()
		case "event_date":
			c.EventDate = r.text()
		case "metadata":
			c.Metadata = raw(r.maybe())
		case "source":
			c.Source = r.text()
		case "event_type":
			c.EventType = r.text()
		case "session_id":
			c.SessionID = r.text()
		case "tags":
			c.Tags = r.texts()
		case "ttl":
			c.TTL = time.Duration(r.number())
		case "importance":
			c.Importance = r.float()
		case "keep_similar":
			c.KeepSimilar = r.yes()
		case "trace":
			c.Trace = r.text()
		default:
			r.skip()
		}
	})
}

func raw(s *string) json.RawMessage {
	if s == nil {
		return nil
	}
	return json.RawMessage(*s)
}

func ofScope(w *writer, s *protocol.Scope) {
	w.object("scope", func() {
		w.text("tenant", s.Tenant)
		w.text("project", s.Project)
		w.text("end_user", s.EndUser)
		w.text("user_id", s.UserID)
		w.text("agent_id", s.AgentID)
		w.text("run_id", s.RunID)
	})
}

func toScope(r *reader, s *protocol.Scope) {
	r.object(func(name []byte) {
		switch string(name) {
		case "tenant":
			s.Tenant = r.text()
		case "project":
			s.Project = r.text()
		case "end_user":
			s.EndUser = r.text()
		case "user_id":
			s.UserID = r.text()
		case "agent_id":
			s.AgentID = r.text()
		case "run_id":
			s.RunID = r.text()
		default:
			r.skip()
		}
	})
}
