package model

import "time"

// The states of a write, and the kinds.
const (
	Pending   = "PENDING"
	Retrying  = "RETRYING"
	Succeeded = "SUCCEEDED"
	Failed    = "FAILED"

	Add      = "add"      // POST /memory/add
	Turn     = "turn"     // POST /v1/memory/add_turn
	Infer    = "infer"    // POST /v1/memories
	Verbatim = "verbatim" // the same with infer false
	Delete   = "delete"   // DELETE /v1/memories/{id}
)

// What goes wrong in an attempt.
const (
	Down    = "PROVIDER_UNAVAILABLE"
	Invalid = "INVALID_EXTRACTION"
)

// Command is what a caller asks for.
type Command struct {
	Kind    string
	User    string
	Name    string // client_ref or Idempotency-Key; "" is none
	Speaker string
	At      string // when a turn was said
	Text    string
	Facts   []string // what an extraction finds in Text
	Target  *Record  // of a Delete
}

// Write is a command that was accepted.
type Write struct {
	Command
	State    string
	Attempts int
	Code     string // of the last failed attempt
	Records  []*Record
	Fails    []string // what goes wrong in the attempts to come

	invalid  int
	account  *Account
	price    int64
	accepted time.Time
	ended    time.Time
}

// Record is one memory.
type Record struct {
	Write     *Write
	User      string
	Text      string
	Forgotten bool
}

// Answer is what a caller is told.
type Answer struct {
	Code     string // "" is a success, else the service's code, or one of those below
	Write    *Write // the write that was made or found
	Made     bool   // it was made now
	Replayed bool
}

// Refusals that have no code of their own on the wire.
const (
	Dropped   = "dropped" // the monthly quota, silently
	Refused   = "limit_exceeded"
	NoCredits = "INSUFFICIENT_CREDITS"
	Conflict  = "IDEMPOTENCY_CONFLICT"
	Missing   = "MEMORY_NOT_FOUND"
	Final     = "OPERATION_NOT_RETRYABLE"
)
