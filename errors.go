package memwrite

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"
)

// Kind says what sort of end a call came to. Each has a sentinel for errors.Is.
type Kind int

// The kinds of errors, in the order of their sentinels.
const (
	KindUnknown Kind = iota // nothing below fits; treated as worth another try
	KindInvalidInput
	KindUnauthorized
	KindForbidden
	KindNotFound
	KindConflict
	KindRefReused
	KindInProgress
	KindRateLimited
	KindQuotaExceeded
	KindInsufficientCredits
	KindTooLarge
	KindServer
	KindUnknownOutcome
	KindEventFailed
	KindStillPending
	KindRedirect
	KindUnsupported
	KindCanceled
	KindRefused
)

// Sentinels, for errors.Is. The comment says what each proves and what helps.
var (
	// ErrInvalidInput: refused by a rule, here or by the service. Nothing was
	// written; the same call can never pass. A client that lacks a setting, such
	// as the service a call is for, gives it too: then the call is sound, and
	// VerdictOf says Hold.
	ErrInvalidInput = errors.New("memwrite: invalid input")
	// ErrUnauthorized: the key is missing, unknown or expired. Nothing was written.
	ErrUnauthorized = errors.New("memwrite: unauthorized")
	// ErrForbidden: the key lacks a permission or was revoked. Nothing was written.
	ErrForbidden = errors.New("memwrite: forbidden")
	// ErrNotFound: no such thing, or none this key can see.
	ErrNotFound = errors.New("memwrite: not found")
	// ErrConflict: the identity belongs to another command. Never retried.
	ErrConflict = errors.New("memwrite: conflict")
	// ErrRefReused: the client_ref belongs to another text, so this text was
	// not stored although the service answered 200. Name the edit with Version.
	ErrRefReused = errors.New("memwrite: reference belongs to another text")
	// ErrInProgress: the same write is running or being repaired. Send the
	// same identity again later.
	ErrInProgress = errors.New("memwrite: the same write is in progress")
	// ErrRateLimited: too many requests in a window. Nothing was written.
	ErrRateLimited = errors.New("memwrite: rate limited")
	// ErrQuotaExceeded: the monthly quota is used up, said aloud (429
	// limit_exceeded) or silently (200 with nothing stored). Nothing was written.
	ErrQuotaExceeded = errors.New("memwrite: monthly quota exceeded")
	// ErrInsufficientCredits: 402. Nothing was written; the key stays free.
	ErrInsufficientCredits = errors.New("memwrite: insufficient credits")
	// ErrTooLarge: a request or an answer above a limit.
	ErrTooLarge = errors.New("memwrite: too large")
	// ErrServer: the service is failing. Send the same identity again later.
	ErrServer = errors.New("memwrite: server error")
	// ErrUnknownOutcome: no whole answer came. The write may have landed; send
	// the same identity again.
	ErrUnknownOutcome = errors.New("memwrite: outcome unknown")
	// ErrEventFailed: the task ended FAILED and no memory was committed.
	// Replaying the key answers FAILED for ever; Redrive runs it again.
	ErrEventFailed = errors.New("memwrite: event failed")
	// ErrStillPending: a wait ended before the event did. The write goes on;
	// Error.Receipt says where to look.
	ErrStillPending = errors.New("memwrite: event still pending")
	// ErrRedirect: the service answered with a redirect that a write must not
	// follow. Error.Target is where it pointed.
	ErrRedirect = errors.New("memwrite: unexpected redirect")
	// ErrUnsupported: 501 or 505: this server will never do it.
	ErrUnsupported = errors.New("memwrite: not supported by the server")
	// ErrRefused: a 4xx that is not the service's word on this request: a status
	// it does not use (421, 426, 499), or a 400, 415 or 422 that names no fault,
	// such as a proxy's page. A person must look at what stands between.
	ErrRefused = errors.New("memwrite: refused, and not in the service's words")
)

var kinds = map[Kind]struct {
	name     string
	sentinel error
}{
	KindInvalidInput:        {"invalid input", ErrInvalidInput},
	KindUnauthorized:        {"unauthorized", ErrUnauthorized},
	KindForbidden:           {"forbidden", ErrForbidden},
	KindNotFound:            {"not found", ErrNotFound},
	KindConflict:            {"conflict", ErrConflict},
	KindRefReused:           {"reference belongs to another text", ErrRefReused},
	KindInProgress:          {"in progress", ErrInProgress},
	KindRateLimited:         {"rate limited", ErrRateLimited},
	KindQuotaExceeded:       {"monthly quota exceeded", ErrQuotaExceeded},
	KindInsufficientCredits: {"insufficient credits", ErrInsufficientCredits},
	KindTooLarge:            {"too large", ErrTooLarge},
	KindServer:              {"server error", ErrServer},
	KindUnknownOutcome:      {"outcome unknown", ErrUnknownOutcome},
	KindEventFailed:         {"event failed", ErrEventFailed},
	KindStillPending:        {"still pending", ErrStillPending},
	KindRedirect:            {"unexpected redirect", ErrRedirect},
	KindUnsupported:         {"not supported by the server", ErrUnsupported},
	KindCanceled:            {"canceled", nil},
	KindRefused:             {"refused, and not in the service's words", ErrRefused},
}

func (k Kind) String() string {
	if e, ok := kinds[k]; ok {
		return e.name
	}
	return "unknown"
}

// Error is the one error type of this package. Match it with errors.Is and the
// sentinels above, or read its fields with errors.As.
//
// No field and no text of it holds the API key or the text of a memory.
type Error struct {
	Op         string          // the method that failed, such as "Add"
	Kind       Kind            //
	Field      string          // the input at fault, for ErrInvalidInput raised here
	Status     int             // HTTP status of the last answer; 0 when there was none
	Code       string          // the service's own code
	Message    string          // the service's own words, at most 1,000 bytes
	RequestID  string          // for the service's support
	Identity   string          // client_ref, Idempotency-Key or event id: the same on every try
	Tries      int             // HTTP exchanges made; 0 when the call was refused or never sent
	RetryAfter time.Duration   // what the service asked for, as parsed (at most 24 h); 0 when it did not
	Details    json.RawMessage // the service's details, at most 4 kB; nil when absent or larger
	Snippet    string          // the first 1,000 bytes of the last answer's body
	Target     string          // host and path a redirect pointed to
	Receipt    *Receipt        // for ErrStillPending, and failures of AddAndWait after acceptance
	Event      *Event          // the last event read, where there was one

	causes   []error
	nameless bool // the outcome of a write without an identity is unknown
	settings bool // the client lacks a setting or has a wrong one; the call is sound
}

// Error is one line: what was tried, what came back, what it proves.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("memwrite: ")
	if e.Op != "" {
		b.WriteString(e.Op)
		b.WriteString(": ")
	}
	if e.Identity != "" {
		b.WriteString(strconv.Quote(e.Identity))
		b.WriteString(": ")
	}
	b.WriteString(e.Kind.String())
	if e.Field != "" {
		b.WriteString(": " + e.Field)
	}
	if e.Status != 0 {
		b.WriteString(": status " + strconv.Itoa(e.Status))
	}
	if e.Code != "" {
		b.WriteString(" " + e.Code)
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	if e.Target != "" {
		b.WriteString(": to " + e.Target)
	}
	for _, c := range e.causes {
		b.WriteString(": " + c.Error())
	}
	if e.RequestID != "" {
		b.WriteString(" (request " + e.RequestID + ")")
	}
	if e.Tries > 0 {
		b.WriteString(" after " + strconv.Itoa(e.Tries))
		if e.Tries == 1 {
			b.WriteString(" try")
		} else {
			b.WriteString(" tries")
		}
	}
	if e.RetryAfter > 0 {
		b.WriteString("; the service asks to wait " + e.RetryAfter.String())
	}
	return b.String()
}

// GoString keeps %#v from printing the raw answer.
func (e *Error) GoString() string { return "&memwrite.Error{" + strconv.Quote(e.Error()) + "}" }

// Is matches the sentinel of the error's kind.
func (e *Error) Is(target error) bool {
	s := kinds[e.Kind].sentinel
	return s != nil && target == s
}

// Unwrap gives the cause of the context and of the connection together, so
// that errors.Is finds context.DeadlineExceeded beside the last answer.
func (e *Error) Unwrap() []error { return e.causes }

// StatusCode is the HTTP status of the last answer, or 0.
func (e *Error) StatusCode() int { return e.Status }

// Wait is the least time to wait before the same call, 0 when nobody said.
func (e *Error) Wait() time.Duration { return e.RetryAfter }

// Retryable tells whether the same call, sent again later, may pass by itself.
// It is false for a write without an identity that may have landed: sent again
// it may be there twice.
func (e *Error) Retryable() bool {
	if e.nameless {
		return false
	}
	switch e.Kind {
	case KindRateLimited, KindServer, KindUnknownOutcome, KindInProgress, KindStillPending, KindUnknown:
		return true
	}
	return false
}

// Temporary is Retryable under the name that generic code looks for.
func (e *Error) Temporary() bool { return e.Retryable() }

// misconfigured is a call that this client's settings do not allow.
func misconfigured(op, field, why string) *Error {
	e := invalid(op, field, why)
	e.settings = true
	return e
}

// invalid is an input refused before any request, naming the field and limit.
func invalid(op, field, why string) *Error {
	return &Error{Op: op, Kind: KindInvalidInput, Field: field, Message: why}
}
