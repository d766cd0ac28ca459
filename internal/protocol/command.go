package protocol

import (
	"encoding/json"
	"time"
)

// Kind is the operation a command asks for.
type Kind string

const (
	// MemorySyncAdd is POST /memory/add: explicit facts, named by client_ref.
	MemorySyncAdd Kind = "add"
	// Turn is POST /v1/memory/add_turn: one conversation turn.
	Turn Kind = "turn"
	// Infer is POST /v1/memories with infer true.
	Infer Kind = "memory_infer"
	// Verbatim is POST /v1/memories with infer false: stored as given, at once.
	Verbatim Kind = "verbatim"
	// Delete is DELETE /v1/memories/{id}: one record, at once.
	Delete Kind = "delete"
	// DeleteAll is DELETE /v1/memories: what a scope holds at this moment.
	DeleteAll Kind = "delete_all"
)

// Wire is which of the two services a command or record belongs to. A record
// is visible on the wire that wrote it.
type Wire string

const (
	MemorySync Wire = "memorysync"
	FishMem    Wire = "fishmem"
)

// Wire is the service the operation belongs to.
func (k Kind) Wire() Wire {
	if k == MemorySyncAdd || k == Turn {
		return MemorySync
	}
	return FishMem
}

// Scope is whose memory it is. MemorySync uses the first three fields, FishMem
// the last three, of which at least one is set.
type Scope struct {
	Tenant, Project, EndUser string
	UserID, AgentID, RunID   string
}

// Message is one line of a conversation.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Command is what a caller asked for, normalised by the service. It holds raw
// input: it is gone from a task once that SUCCEEDED. Treat it as immutable.
type Command struct {
	Kind  Kind
	Scope Scope

	// Key is the Idempotency-Key of FishMem's kinds; ClientRef that of
	// MemorySyncAdd, empty when the caller gave none.
	Key       string
	ClientRef string

	// Target is the id of the record a Delete is about.
	Target string

	// Text is the input of MemorySyncAdd, Turn and content of the others.
	Text     string
	Messages []Message

	// Speaker and OccurredAt are a turn's, as strings: spelling counts.
	Speaker, OccurredAt string
	Role                string

	EventDate   string // Infer and Verbatim, as sent
	Metadata    json.RawMessage
	Source      string
	EventType   string
	SessionID   string
	Tags        []string
	TTL         time.Duration // 0: kept for good
	Importance  *float64
	KeepSimilar bool // deduplicate=false: no near-duplicate filter

	// Trace is the traceparent of the request that brought the command. It is
	// no part of what the command means.
	Trace string
}

// deletes says that the command takes records away and makes none.
func (k Kind) deletes() bool { return k == Delete || k == DeleteAll }

// inputs is the text to read, one entry a message.
func (c *Command) inputs() []string {
	if len(c.Messages) == 0 {
		return []string{c.Text}
	}
	out := make([]string, len(c.Messages))
	for i, m := range c.Messages {
		out[i] = m.Content
	}
	return out
}
