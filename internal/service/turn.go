package service

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/memwrite/memwrite-go/internal/api"
)

// TurnReplayWindow is how long a turn is recognised.
const TurnReplayWindow = 30 * 24 * time.Hour

type turnReceipt struct {
	MemoryID         *string `json:"memory_id"`
	Status           string  `json:"status"`
	ProcessingStatus string  `json:"processing_status"`
	EmbedMode        string  `json:"embed_mode"`
	AlreadyExists    bool    `json:"already_exists"`
	ProcessingError  *string `json:"processing_error"`
	RequestID        *string `json:"request_id"`
}

// AddTurn answers POST /v1/memory/add_turn. The order of checks is the
// service's: the body, the role, filler, the replay key, then the quota. A
// skipped turn leaves nothing behind.
func (s *Service) AddTurn(w http.ResponseWriter, r *http.Request, params api.AddTurnParams) {
	c := callOf(r)
	scope, f := s.tenantScope(c, params.XProjectID, params.XTenantID)
	if f != nil {
		s.refuse(w, r, f)
		return
	}
	o, f := s.readMemorySync(w, r)
	if f != nil {
		s.refuse(w, r, f)
		return
	}
	tenant, user := o.required("tenant_id", 0), o.required("user_id", 0)
	text := o.required("text", 0)
	role, _ := o.text("role", 0)
	speaker, _ := o.text("speaker", 0)
	occurred, _ := o.text("occurred_at", 0)
	source, _ := o.text("source", 64)
	metadata := o.document("metadata")
	o.boolean("sync_embed", false)
	switch {
	case len(o.problems()) > 0:
		s.refuse(w, r, detail(http.StatusUnprocessableEntity, o.problems()[0].Field+" "+o.problems()[0].Message))
		return
	case blank(tenant), blank(user):
		s.refuse(w, r, detail(http.StatusUnprocessableEntity, "tenant_id and user_id must not be empty"))
		return
	case blank(text):
		s.refuse(w, r, detail(http.StatusUnprocessableEntity, "text must not be empty"))
		return
	case len(metadata) > s.opts.MaxMetadata:
		s.refuse(w, r, detail(http.StatusRequestEntityTooLarge, "metadata is too large"))
		return
	}
	if f := s.ownTenant(c, tenant); f != nil {
		s.refuse(w, r, f)
		return
	}
	scope.User = user

	said, plain := roleOf(role, text, speaker, metadata)
	if said != "user" {
		s.receipt(w, turnReceipt{Status: "ok", ProcessingStatus: "skipped_non_user_turn"})
		return
	}
	if s.low(plain) {
		s.receipt(w, turnReceipt{Status: "ok", ProcessingStatus: "skipped_low_value"})
		return
	}
	_, replayed, err := s.submit(r.Context(), Write{
		Workspace: c.key.Workspace, Operation: OpTurn, Scope: scope,
		Key: turnKey(user, speaker, occurred, text), KeyTTL: TurnReplayWindow,
		Text: text, Metadata: turnMetadata(metadata), Source: source, Importance: 0.5,
		Speaker: speaker, OccurredAt: occurred,
	})
	switch {
	case errors.Is(err, ErrQuotaSilent):
		s.receipt(w, turnReceipt{Status: "ok", ProcessingStatus: "skipped"})
	case err != nil:
		s.memoryFailure(w, r, err)
	case replayed:
		w.Header().Set("Idempotent-Replayed", "true")
		s.receipt(w, turnReceipt{Status: "ok", ProcessingStatus: "skipped_replay", AlreadyExists: true})
	default:
		s.receipt(w, turnReceipt{Status: "processing", ProcessingStatus: "distilling", RequestID: &c.requestID})
	}
}

func (s *Service) receipt(w http.ResponseWriter, body turnReceipt) {
	body.EmbedMode = "none"
	answer(w, s.opts.TurnStatus, body)
}

// turnKey joins the fields of the replay key so that no two sets of values
// give the same string.
func turnKey(fields ...string) string {
	b, _ := json.Marshal(fields)
	return string(b)
}

// roleOf infers whose turn it is, and gives the text without a role prefix:
// from the role, the text's prefix, the speaker before "@", metadata.role,
// else it is the user.
func roleOf(role, text, speaker string, metadata json.RawMessage) (said, plain string) {
	plain = text
	prefix := ""
	if before, after, ok := strings.Cut(text, ":"); ok {
		if r := roleWord(before); r != "" && !blank(after) {
			prefix, plain = r, strings.TrimSpace(after)
		}
	}
	var meta struct {
		Role string `json:"role"`
	}
	_ = json.Unmarshal(metadata, &meta)
	before, _, _ := strings.Cut(speaker, "@")
	for _, r := range []string{roleWord(role), prefix, roleWord(before), roleWord(meta.Role)} {
		if r != "" {
			return r, plain
		}
	}
	return "user", plain
}

// PlainTurn is a turn's text as extraction reads it: without a role prefix. The
// replay key is made of the text as it was sent.
func PlainTurn(text string) string {
	_, plain := roleOf("", text, "", nil)
	return plain
}

func roleWord(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	switch {
	case slices.Contains([]string{"human", "user", "customer", "caller"}, s):
		return "user"
	case slices.Contains([]string{"ai", "assistant", "bot", "system", "tool", "function", "agent", "model", "developer"}, s):
		return "assistant"
	}
	return ""
}

// turnMetadata keeps the scalar values a caller may set and adds the server's
// own.
func turnMetadata(raw json.RawMessage) json.RawMessage {
	var in map[string]json.RawMessage
	_ = json.Unmarshal(raw, &in)
	out := map[string]json.RawMessage{}
	for k, v := range in {
		if len(v) == 0 || v[0] == '{' || v[0] == '[' ||
			slices.Contains([]string{"write_origin", "distilled_from", "turn_role", "history_id", "episodic"}, k) {
			continue
		}
		out[k] = v
	}
	out["write_origin"] = json.RawMessage(`"turn-extraction"`)
	out["turn_role"] = json.RawMessage(`"user"`)
	b, _ := json.Marshal(out)
	return b
}
