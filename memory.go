package memwrite

import (
	"bytes"
	"encoding/json"
)

// Memory is a record of MemorySync. Only ID and Text are certain; times are
// the service's own strings.
type Memory struct {
	ID           int64           `json:"id"`
	Text         string          `json:"text"` // the extractor's wording, not the input
	Summary      string          `json:"summary"`
	CreatedAt    string          `json:"created_at"`
	UpdatedAt    string          `json:"updated_at"`
	ExpiresAt    string          `json:"expires_at"`
	Metadata     json.RawMessage `json:"metadata"`
	Tags         []string        `json:"tags"`
	Source       string          `json:"source"`
	EventType    string          `json:"event_type"`
	SessionID    string          `json:"session_id"`
	Tier         string          `json:"tier"`
	MemoryType   string          `json:"memory_type"`
	Importance   float64         `json:"importance"`
	QualityScore *float64        `json:"quality_score"`
	IsSummary    bool            `json:"is_summary"`
	KeyPoints    []string        `json:"key_points"`
	Score        float64         `json:"score"` // on answers of Query
}

// set takes one field of an answer.
func (m *Memory) set(name, value []byte) bool {
	switch string(name) {
	case "text":
		return setText(&m.Text, value)
	case "summary":
		return setText(&m.Summary, value)
	case "created_at":
		return setText(&m.CreatedAt, value)
	case "updated_at":
		return setText(&m.UpdatedAt, value)
	case "expires_at":
		return setText(&m.ExpiresAt, value)
	case "metadata":
		m.Metadata = bytes.Clone(value)
		return true
	case "tags":
		return setTexts(&m.Tags, value)
	case "source":
		return setText(&m.Source, value)
	case "event_type":
		return setText(&m.EventType, value)
	case "session_id":
		return setText(&m.SessionID, value)
	case "tier":
		return setText(&m.Tier, value)
	case "memory_type":
		return setText(&m.MemoryType, value)
	case "importance":
		return setFloat(&m.Importance, value)
	case "quality_score":
		return setOrNone(&m.QualityScore, value, setFloat)
	case "key_points":
		return setTexts(&m.KeyPoints, value)
	case "is_summary":
		return setBool(&m.IsSummary, value)
	case "score":
		return setFloat(&m.Score, value)
	case "id":
		return false // another type's to set
	}
	return unknownField(name)
}

// Fact is what MemorySync learned from a turn.
type Fact struct {
	MemoryID  string          `json:"memory_id"` // "m_" and the number that Memory and Forget know it by
	Text      string          `json:"raw_text"`
	Value     string          `json:"value"`
	Summary   string          `json:"summary"`
	Metadata  json.RawMessage `json:"metadata"`
	CreatedAt string          `json:"created_at"`
	Source    string          `json:"source"`
	Score     float64         `json:"score"`
}

// Record is a memory of FishMem. Ids are opaque.
type Record struct {
	ID           string          `json:"id"`
	Memory       string          `json:"memory"`
	MemoryType   string          `json:"memory_type"`
	Importance   float64         `json:"importance"`
	UserID       string          `json:"user_id"`
	AgentID      string          `json:"agent_id"`
	RunID        string          `json:"run_id"`
	Metadata     json.RawMessage `json:"metadata"`
	CreatedAt    string          `json:"created_at"`
	UpdatedAt    string          `json:"updated_at"`
	EventDate    string          `json:"event_date"`
	ValidFrom    string          `json:"valid_from"`
	ValidTo      string          `json:"valid_to"`
	Subject      string          `json:"subject"`
	Attribute    string          `json:"attribute"`
	SupersededBy string          `json:"superseded_by"`
	AccessCount  int64           `json:"access_count"`
	AccessedAt   string          `json:"last_accessed_at"` // empty: never
	Score        float64         `json:"score"`            // on answers of Search
}

// Scope says whose memory it is; at least one of the three is needed, each at
// most 512 characters.
type Scope struct {
	UserID  string `json:"user_id,omitempty"`
	AgentID string `json:"agent_id,omitempty"`
	RunID   string `json:"run_id,omitempty"`
}

func (s Scope) check(op string) error {
	if s == (Scope{}) {
		return invalid(op, "Scope", "is empty; at least one of UserID, AgentID and RunID is needed")
	}
	for _, f := range []struct{ name, v string }{
		{"Scope.UserID", s.UserID}, {"Scope.AgentID", s.AgentID}, {"Scope.RunID", s.RunID},
	} {
		if f.v == "" {
			continue
		}
		if err := checkText(op, f.name, f.v); err != nil {
			return err
		}
		if err := checkLength(op, f.name, f.v, MaxScope); err != nil {
			return err
		}
	}
	return nil
}
