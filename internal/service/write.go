package service

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"time"
	"unicode/utf8"

	"github.com/memwrite/memwrite-go/internal/api"
)

// Limits of a FishMem write.
const (
	maxCommand  = 250_000 // bytes of the parsed command, written anew
	maxMessages = 500
	maxKey      = 200 // UTF-16 code units after trimming
)

// CreateMemories answers POST /v1/memories. Body, then schema, then key, then
// credits: the order the live service checks them in.
func (s *Service) CreateMemories(w http.ResponseWriter, r *http.Request, params api.CreateMemoriesParams) {
	c := callOf(r)
	o, f := s.readFishMem(w, r)
	if f != nil {
		s.refuse(w, r, f)
		return
	}
	write, f := fishWrite(o)
	if f != nil {
		s.refuse(w, r, f)
		return
	}
	write.Workspace = c.key.Workspace
	write.Key, f = idempotencyKey(params.IdempotencyKey, write.Operation == OpInfer || s.opts.StrictKeys)
	if f != nil {
		s.refuse(w, r, f)
		return
	}
	task, replayed, err := s.submit(r.Context(), write)
	if err == nil && write.Operation == OpVerbatim && !task.State.Ended() {
		task, err = s.backend.Await(r.Context(), c.key.Workspace, task.ID, s.opts.InlineWait, func(t Task) bool { return t.State.Ended() })
	}
	if err != nil {
		s.fishFailure(w, r, err)
		return
	}
	if replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	if write.Operation == OpInfer {
		answer(w, http.StatusAccepted, map[string]any{"message": "Memory write accepted", "status": task.State, "event_id": task.ID})
		return
	}
	switch task.State {
	case Succeeded:
		answer(w, http.StatusOK, map[string]any{"results": resultViews(task.Records)})
	case Failed:
		s.refuse(w, r, fail(http.StatusInternalServerError, "MEMORY_ENGINE_ERROR", "the write failed and nothing was stored"))
	default:
		s.refuse(w, r, fail(http.StatusConflict, "IDEMPOTENCY_INCOMPLETE", "an operation with this key is still running"))
	}
}

// readFishMem reads a body; null for an optional field is refused on this wire.
func (s *Service) readFishMem(w http.ResponseWriter, r *http.Request) (*object, *failure) {
	o, err := readObject(w, r, s.opts.MaxBody, true)
	switch {
	case err == nil:
		return o, nil
	case errors.Is(err, errTooLarge):
		return nil, fail(http.StatusBadRequest, "INVALID_REQUEST", err.Error())
	case errors.Is(err, errContentType), errors.Is(err, errNotObject), errors.Is(err, errTooDeep):
		return nil, fail(http.StatusBadRequest, "INVALID_BODY", err.Error())
	}
	return nil, fail(http.StatusBadRequest, "INVALID_BODY", "the body could not be read")
}

// utcTime is what event_date has to look like: full seconds and a final Z.
var utcTime = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$`)

func fishWrite(o *object) (Write, *failure) {
	out := Write{Operation: OpInfer, Importance: 0.5}
	content, hasContent := o.text("content", 0)
	if hasContent && blank(content) {
		o.fail("content", "length", "must not be blank")
	}
	out.Text = content
	for i, raw := range o.list("messages", 1, maxMessages) {
		m, ok := o.child("messages", i, raw)
		if !ok {
			continue
		}
		msg := Message{Role: m.required("role", 0), Content: m.required("content", 0)}
		switch msg.Role {
		case "user", "assistant", "system", "tool", "":
		default:
			m.fail("role", "value", "must be user, assistant, system or tool")
		}
		if m.has("content") && blank(msg.Content) {
			m.fail("content", "length", "must not be blank")
		}
		out.Messages = append(out.Messages, msg)
	}
	if !o.has("content") && !o.has("messages") {
		o.fail("content", "missing", "content or messages is required")
	}
	scope, scoped := fishScope(o)
	if !scoped {
		o.fail("user_id", "missing", "one of user_id, agent_id and run_id is required")
	}
	out.Scope = scope
	if !o.boolean("infer", true) {
		out.Operation = OpVerbatim
	}
	if date, ok := o.text("event_date", 0); ok {
		if _, err := time.Parse(time.RFC3339Nano, date); err != nil || !utcTime.MatchString(date) {
			o.fail("event_date", "value", "must be UTC with seconds and a final Z")
		}
		out.EventDate = date
	}
	out.Metadata = o.document("metadata")
	if len(o.problems()) > 0 {
		f := fail(http.StatusBadRequest, "INVALID_REQUEST", "the request is not valid")
		f.Details = o.problems()
		return out, f
	}
	if commandSize(out) > maxCommand {
		return out, fail(http.StatusBadRequest, "INVALID_REQUEST", "the command is larger than 250000 bytes")
	}
	return out, nil
}

// commandSize is the length of the command written anew, without the unknown
// fields and the white space it came with.
func commandSize(w Write) int {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(struct {
		Content   string          `json:"content,omitempty"`
		Messages  []Message       `json:"messages,omitempty"`
		UserID    string          `json:"user_id,omitempty"`
		AgentID   string          `json:"agent_id,omitempty"`
		RunID     string          `json:"run_id,omitempty"`
		Infer     bool            `json:"infer"`
		EventDate string          `json:"event_date,omitempty"`
		Metadata  json.RawMessage `json:"metadata,omitempty"`
	}{w.Text, w.Messages, w.Scope.User, w.Scope.Agent, w.Scope.Run, w.Operation == OpInfer, w.EventDate, w.Metadata})
	return out.Len() - 1
}

// idempotencyKey trims and checks the header; "" with no failure means there
// is none and none is needed.
func idempotencyKey(header *string, required bool) (string, *failure) {
	if header == nil {
		if required {
			return "", fail(http.StatusBadRequest, "IDEMPOTENCY_KEY_REQUIRED", "an Idempotency-Key header is required")
		}
		return "", nil
	}
	key := trimmed(*header)
	if key == "" || utf16Len(key) > maxKey || !utf8.ValidString(key) {
		return "", fail(http.StatusBadRequest, "INVALID_IDEMPOTENCY_KEY", "an Idempotency-Key is 1 to 200 characters")
	}
	return key, nil
}

// fishFailure answers a backend's refusal on FishMem.
func (s *Service) fishFailure(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, ErrConflict):
		s.refuse(w, r, fail(http.StatusConflict, "IDEMPOTENCY_CONFLICT", "the Idempotency-Key was used for another command"))
	case errors.Is(err, ErrCredits):
		s.refuse(w, r, fail(http.StatusPaymentRequired, "INSUFFICIENT_CREDITS", "not enough credits"))
	case errors.Is(err, ErrNotFound):
		s.refuse(w, r, fail(http.StatusNotFound, "MEMORY_NOT_FOUND", "no such memory"))
	case errors.Is(err, ErrTooMany):
		s.refuse(w, r, fail(http.StatusRequestEntityTooLarge, "DELETE_ALL_TOO_LARGE", "too many memories for one call"))
	default:
		s.unexpected(w, r, err)
	}
}
