package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// Added is the type of a message about an inferred write that SUCCEEDED. There
// is none about one that FAILED, as at the live service: a subscriber has to
// look for those itself.
const Added = "memory_add"

type message struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	CreatedAt string `json:"created_at"`
	ProjectID string `json:"project_id"`
	Data      added  `json:"data"`
}

type added struct {
	OperationID string   `json:"operation_id"`
	MemoryIDs   []string `json:"memory_ids"`
	Results     int      `json:"results"`
	UserID      string   `json:"user_id,omitempty"`
	AgentID     string   `json:"agent_id,omitempty"`
	RunID       string   `json:"run_id,omitempty"`
}

// messageOf is what is told of a task: ids and counts, and no memory text.
func messageOf(t protocol.Task) message {
	m := message{
		ID: Added + ":" + t.ID, Type: Added, ProjectID: t.Workspace,
		CreatedAt: t.CompletedAt.UTC().Format("2006-01-02T15:04:05.000Z"),
		Data: added{
			OperationID: t.ID, MemoryIDs: []string{}, UserID: t.Scope.UserID, AgentID: t.Scope.AgentID, RunID: t.Scope.RunID,
		},
	}
	if t.Result != nil {
		for _, r := range t.Result.Records {
			m.Data.MemoryIDs = append(m.Data.MemoryIDs, r.ID)
		}
	}
	m.Data.Results = len(m.Data.MemoryIDs)
	return m
}

func (m message) encode() []byte {
	b, _ := json.Marshal(m) // strings and an int
	return b
}

// sign sets the headers of one attempt. The time is part of what is signed, so
// that an attempt cannot be kept and played again later.
func sign(h http.Header, secret, delivery, kind string, body []byte, now time.Time) {
	stamp := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(stamp + "."))
	mac.Write(body)
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "FishMem-Webhooks/1.0")
	h.Set("X-Fishmem-Delivery", delivery)
	h.Set("X-Fishmem-Event", kind)
	h.Set("X-Fishmem-Timestamp", stamp)
	h.Set("X-Fishmem-Signature", "v1="+hex.EncodeToString(mac.Sum(nil)))
}

// deliveryID is the same for every attempt at one message.
func deliveryID(workspace, message string) string {
	sum := sha256.Sum256([]byte(workspace + "\x00" + message))
	return "wd_" + hex.EncodeToString(sum[:16])
}
