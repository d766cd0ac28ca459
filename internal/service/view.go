package service

import (
	"encoding/json"
	"strconv"
	"time"
)

// stamp is a time as FishMem writes it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// offsetLayout is a time of UTC as MemorySync writes it: with an offset.
const offsetLayout = "2006-01-02T15:04:05.000000+00:00"

func offsetStamp(t time.Time) string { return t.UTC().Format(offsetLayout) }

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func optionalStamp(t time.Time, format func(time.Time) string) *string {
	if t.IsZero() {
		return nil
	}
	s := format(t)
	return &s
}

// metadataOf is raw metadata, or null.
func metadataOf(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

type memoryBody struct {
	ID         int64           `json:"id"`
	UserID     int64           `json:"user_id"`
	Text       string          `json:"text"`
	Summary    *string         `json:"summary"`
	CreatedAt  string          `json:"created_at"`
	UpdatedAt  string          `json:"updated_at"`
	Metadata   json.RawMessage `json:"metadata"`
	Tags       []string        `json:"tags"`
	Source     *string         `json:"source"`
	EventType  *string         `json:"event_type"`
	Tier       string          `json:"tier"`
	Importance float64         `json:"importance"`
	IsSummary  bool            `json:"is_summary"`
	ExpiresAt  *string         `json:"expires_at"`
	KeyPoints  []string        `json:"key_points"`
	Quality    *float64        `json:"quality_score"`
	MemoryType string          `json:"memory_type"`
	Score      *float64        `json:"score,omitempty"`
}

// memoryView is a record on /memory/*. It depends on the record alone, so that
// an exact repeat is answered with an identical body.
func memoryView(r Record) memoryBody {
	tags := r.Tags
	if tags == nil {
		tags = []string{}
	}
	return memoryBody{
		ID: r.Number, UserID: r.UserNumber, Text: r.Text, CreatedAt: offsetStamp(r.CreatedAt), UpdatedAt: offsetStamp(r.UpdatedAt),
		Metadata: metadataOf(r.Metadata), Tags: tags, Source: optional(r.Source), EventType: optional(r.EventType),
		Tier: "hot", Importance: r.Importance, ExpiresAt: optionalStamp(r.ExpiresAt, offsetStamp),
		KeyPoints: []string{}, MemoryType: r.Type,
	}
}

type turnMemoryBody struct {
	MemoryID  string          `json:"memory_id"`
	RawText   string          `json:"raw_text"`
	Summary   *string         `json:"summary"`
	Metadata  json.RawMessage `json:"metadata"`
	CreatedAt string          `json:"created_at"`
	Source    *string         `json:"source"`
	Score     *float64        `json:"score,omitempty"`
}

// turnMemoryView is a record on /v1/memory/*.
func turnMemoryView(r Record, scored bool) turnMemoryBody {
	out := turnMemoryBody{
		MemoryID: "m_" + strconv.FormatInt(r.Number, 10), RawText: r.Text, Metadata: metadataOf(r.Metadata),
		CreatedAt: offsetStamp(r.CreatedAt), Source: optional(r.Source),
	}
	if scored {
		out.Score = &r.Score
	}
	return out
}

type fishMemoryBody struct {
	ID         string          `json:"id"`
	Memory     string          `json:"memory"`
	MemoryType string          `json:"memory_type"`
	Importance float64         `json:"importance"`
	UserID     *string         `json:"user_id"`
	AgentID    *string         `json:"agent_id"`
	RunID      *string         `json:"run_id"`
	Metadata   json.RawMessage `json:"metadata"`
	CreatedAt  string          `json:"created_at"`
	UpdatedAt  string          `json:"updated_at"`
	EventDate  *string         `json:"event_date"`
	ValidFrom  *string         `json:"valid_from"`
	ValidTo    *string         `json:"valid_to"`
	Accesses   int64           `json:"access_count"`
	AccessedAt *string         `json:"last_accessed_at"`
	Score      *float64        `json:"score,omitempty"`
}

// fishView is a record on /v1/memories.
func (s *Service) fishView(workspace string, r Record, scored bool) fishMemoryBody {
	reads := s.accesses.of(workspace, r.ID)
	out := fishMemoryBody{
		ID: r.ID, Memory: r.Text, MemoryType: r.Type, Importance: r.Importance,
		UserID: optional(r.Scope.User), AgentID: optional(r.Scope.Agent), RunID: optional(r.Scope.Run),
		Metadata: metadataOf(r.Metadata), CreatedAt: stamp(r.CreatedAt), UpdatedAt: stamp(r.UpdatedAt), EventDate: optional(r.EventDate),
		Accesses: reads.count, AccessedAt: optionalStamp(reads.last, stamp),
	}
	if scored {
		out.Score = &r.Score
	}
	return out
}

type resultBody struct {
	ID     string `json:"id"`
	Memory string `json:"memory"`
	Event  string `json:"event"`
}

// resultViews names the records of a task. The event of each is ADD, also for
// one that an earlier task added: the wire has no word for found.
func resultViews(records []Record) []resultBody {
	out := make([]resultBody, len(records))
	for i, r := range records {
		out[i] = resultBody{r.ID, r.Text, "ADD"}
	}
	return out
}
