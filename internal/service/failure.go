package service

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// wire is which of the two services a path belongs to. Each has its own auth
// header, error shapes and way to count.
type wire int

const (
	memorySync wire = iota
	fishMem
)

// shape is how MemorySync words an error: its paths grew up at different times.
type shape int

const (
	shapeStandard shape = iota // {"error":{"code","message","details"},"request_id"}
	shapeDetail                // {"detail":"..."}
	shapeQuota                 // {"detail":{"error","message"}}
	shapeRate                  // {"error":{"code","message","retry_after"}}
)

// failure is an error answer before it is put in the shape of its wire.
type failure struct {
	Status     int
	Code       string
	Message    string
	Details    []issue
	Shape      shape // MemorySync only
	RetryAfter time.Duration
	HasRetry   bool
}

func fail(status int, code, message string) *failure {
	return &failure{Status: status, Code: code, Message: message}
}

func detail(status int, message string) *failure {
	return &failure{Status: status, Message: message, Shape: shapeDetail}
}

// seconds rounds up: a caller that comes back a moment early is sent away again.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// body is the JSON of the failure on its wire.
func (f *failure) body(on wire, requestID string) any {
	if on == fishMem {
		return struct {
			Code      string `json:"code"`
			Message   string `json:"message"`
			RequestID string `json:"request_id"`
		}{f.Code, f.fishMessage(), requestID}
	}
	switch f.Shape {
	case shapeDetail:
		return map[string]string{"detail": f.Message}
	case shapeQuota:
		return map[string]any{"detail": map[string]string{"error": f.Code, "message": f.Message}}
	case shapeRate:
		return map[string]any{"error": map[string]any{"code": f.Code, "message": f.Message, "retry_after": seconds(f.RetryAfter)}}
	}
	inner := map[string]any{"code": f.Code, "message": f.Message}
	if len(f.Details) > 0 {
		details := make([]map[string]string, 0, len(f.Details))
		for _, d := range f.Details {
			details = append(details, map[string]string{"field": d.Field, "type": d.Type, "message": d.Message})
		}
		inner["details"] = details
	}
	return map[string]any{"error": inner, "request_id": requestID}
}

// fishMessage is a list of issues as that service prints them: an indented
// JSON array in the message.
func (f *failure) fishMessage() string {
	if len(f.Details) == 0 {
		return f.Message
	}
	type entry struct {
		Code    string   `json:"code"`
		Path    []string `json:"path"`
		Message string   `json:"message"`
	}
	entries := make([]entry, 0, len(f.Details))
	for _, d := range f.Details {
		entries = append(entries, entry{d.Type, []string{d.Field}, d.Message})
	}
	out, _ := json.MarshalIndent(entries, "", "  ")
	return string(out)
}

// write answers with the failure.
func (f *failure) write(w http.ResponseWriter, on wire, requestID string) {
	if f.HasRetry {
		w.Header().Set("Retry-After", strconv.FormatInt(seconds(f.RetryAfter), 10))
	}
	if f.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", map[wire]string{memorySync: "ApiKey", fishMem: "Bearer"}[on])
	}
	answer(w, f.Status, f.body(on, requestID))
}
