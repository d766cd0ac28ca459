package service

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// Sent is the identity a request carries, as its sender spelled it: one of
// three forms at most. It is for who looks at requests; what the service acts
// on it decodes itself.
type Sent struct {
	ClientRef      string
	IdempotencyKey string
	Turn           string
	TurnTenant     string
	TurnUser       string
	TurnSpeaker    string
	OccurredAt     string
}

// SentWith reads the identity off a request. A body that is no JSON has none.
func SentWith(h http.Header, path string, body []byte) Sent {
	if key := strings.TrimSpace(h.Get("Idempotency-Key")); key != "" {
		return Sent{IdempotencyKey: key}
	}
	var b struct {
		ClientRef  string `json:"client_ref"`
		Tenant     string `json:"tenant_id"`
		User       string `json:"user_id"`
		Text       string `json:"text"`
		Speaker    string `json:"speaker"`
		OccurredAt string `json:"occurred_at"`
	}
	if len(body) == 0 || json.Unmarshal(body, &b) != nil {
		return Sent{}
	}
	if strings.HasSuffix(path, "/add_turn") {
		return Sent{Turn: b.Text, TurnTenant: b.Tenant, TurnUser: b.User, TurnSpeaker: b.Speaker, OccurredAt: b.OccurredAt}
	}
	return Sent{ClientRef: b.ClientRef}
}

// Kind is the name of the form, "" without an identity.
func (s Sent) Kind() string {
	switch {
	case s.IdempotencyKey != "":
		return "Idempotency-Key"
	case s.ClientRef != "":
		return "client_ref"
	case s.Turn != "":
		return "replay key"
	}
	return ""
}

// Hash is the identity as its task keeps it, in a workspace and its default
// project; zero without one.
func (s Sent) Hash(workspace, endUser string) protocol.Hash {
	switch {
	case s.IdempotencyKey != "":
		return protocol.CommandKey(workspace, s.IdempotencyKey)
	case s.ClientRef != "":
		return protocol.ClientRef(workspace, workspace, DefaultProject, endUser, s.ClientRef)
	case s.Turn != "":
		return protocol.ReplayKey(workspace, cmp.Or(s.TurnTenant, workspace), s.TurnUser, s.TurnSpeaker, s.OccurredAt, s.Turn)
	}
	return protocol.Hash{}
}
