package memwrite

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// What makes a webhook message no good. None of them says how near it was.
var (
	// ErrWebhookSignature: not signed with one of the secrets, or changed on
	// its way: forged, cut short, or decoded and encoded again.
	ErrWebhookSignature = errors.New("memwrite: the webhook's signature does not match")
	// ErrWebhookExpired: signed too long ago, or in the future.
	ErrWebhookExpired = errors.New("memwrite: the webhook was not signed just now")
	// ErrWebhookMalformed: signed, and not a message: an error of the sender.
	ErrWebhookMalformed = errors.New("memwrite: the webhook is not a message")
)

const (
	defaultTolerance = 5 * time.Minute
	signatureScheme  = "v1="
)

// WebhookEvent is one message of FishMem's webhooks.
type WebhookEvent struct {
	// ID names what happened: the same on every delivery of it. Keep it to
	// know what you have seen.
	ID string `json:"id"`
	// Type is memory_add, memory_update, memory_delete and others; open.
	Type      string `json:"type"`
	CreatedAt string `json:"created_at"`
	ProjectID string `json:"project_id"`
	// Data is the message's own part, as it was sent.
	Data json.RawMessage `json:"data"`
	// Delivery is the sender's number of this delivery, for its support. It is
	// not signed.
	Delivery string `json:"-"`
}

// MemoryAdded is the data of a memory_add for an inferred write.
type MemoryAdded struct {
	EventID   string   `json:"operation_id"` // of the receipt
	MemoryIDs []string `json:"memory_ids"`   // none: there was nothing worth storing
	Results   int      `json:"results"`
	UserID    string   `json:"user_id"`
	AgentID   string   `json:"agent_id"`
	RunID     string   `json:"run_id"`
}

// MemoryAdded reads the data of a memory_add; false for another type, and for
// one that names no event.
func (e *WebhookEvent) MemoryAdded() (MemoryAdded, bool) {
	var m MemoryAdded
	if e.Type != "memory_add" || json.Unmarshal(e.Data, &m) != nil || m.EventID == "" {
		return MemoryAdded{}, false
	}
	return m, true
}

// WebhookVerifier tells messages of FishMem from everybody else's.
type WebhookVerifier struct {
	// Secrets are what messages may be signed with: one, or the new and the
	// old while a secret is changed. Without any, nothing passes.
	Secrets []string
	// Tolerance is how far a message's time may be from now; 5 min. It bounds
	// how long a message that somebody caught can be played again.
	Tolerance time.Duration
	// Now is the time; time.Now.
	Now func() time.Time
}

// Parse verifies a message and reads it. body is the request's body byte for
// byte: JSON that was decoded and encoded again does not match its signature.
// It compares with every secret, each in constant time, and looks into the body
// only after that.
//
// A message that was played again within the tolerance passes here as often as
// it comes: [WebhookHandler] tells those apart.
func (v WebhookVerifier) Parse(h http.Header, body []byte) (*WebhookEvent, error) {
	stamp, ok := onlyValue(h, "X-Fishmem-Timestamp")
	sent, ok2 := onlyValue(h, "X-Fishmem-Signature")
	if !ok || !ok2 || !v.signed(stamp, sent, body) {
		return nil, ErrWebhookSignature
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || len(stamp) > 12 {
		return nil, ErrWebhookExpired
	}
	now := time.Now()
	if v.Now != nil {
		now = v.Now()
	}
	tolerance := v.Tolerance
	if tolerance <= 0 {
		tolerance = defaultTolerance
	}
	if d := now.Sub(time.Unix(seconds, 0)); d > tolerance || d < -tolerance {
		return nil, ErrWebhookExpired
	}
	var e WebhookEvent
	d := json.NewDecoder(bytes.NewReader(body))
	if err := d.Decode(&e); err != nil || e.ID == "" || e.Type == "" {
		return nil, ErrWebhookMalformed
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, ErrWebhookMalformed
	}
	e.Delivery = h.Get("X-Fishmem-Delivery")
	return &e, nil
}

func (v WebhookVerifier) signed(stamp, sent string, body []byte) bool {
	digits, ok := strings.CutPrefix(sent, signatureScheme)
	sum, err := hex.DecodeString(digits)
	if !ok || err != nil || len(sum) != sha256.Size {
		return false
	}
	found := false
	for _, secret := range v.Secrets {
		if secret == "" {
			continue // anybody knows that one
		}
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(stamp + "."))
		mac.Write(body)
		if hmac.Equal(mac.Sum(nil), sum) {
			found = true
		}
	}
	return found
}

// onlyValue is the value of a header that was sent once.
func onlyValue(h http.Header, name string) (string, bool) {
	values := h.Values(name)
	if len(values) != 1 || values[0] == "" {
		return "", false
	}
	return values[0], true
}
