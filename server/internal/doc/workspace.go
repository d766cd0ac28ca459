package doc

import (
	"encoding/json"
	"fmt"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

type workspace struct {
	ID              string `json:"id"`
	AddsPerMonth    int64  `json:"adds_per_month"`
	StrictQuota     bool   `json:"strict_quota,omitempty"`
	Credits         int64  `json:"credits"`
	InvalidAttempts int    `json:"invalid_output_attempts,omitempty"`
}

// OfWorkspace writes a workspace down.
func OfWorkspace(w protocol.Workspace) ([]byte, error) {
	return json.Marshal(workspace{w.ID, w.AddsPerMonth, w.StrictQuota, w.Credits, w.Extraction.InvalidOutputAttempts})
}

// Workspace reads a workspace back.
func Workspace(doc []byte) (protocol.Workspace, error) {
	var d workspace
	if err := json.Unmarshal(doc, &d); err != nil {
		return protocol.Workspace{}, fmt.Errorf("doc: a workspace cannot be read: %T", err)
	}
	return protocol.Workspace{ID: d.ID, AddsPerMonth: d.AddsPerMonth, StrictQuota: d.StrictQuota, Credits: d.Credits,
		Extraction: protocol.ExtractionPolicy{InvalidOutputAttempts: d.InvalidAttempts}}, nil
}
