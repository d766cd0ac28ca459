package vector

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// ownersOf are the names records are looked for under; a query takes the first.
func ownersOf(workspace string, w protocol.Wire, s protocol.Scope) (out []string) {
	by := [][2]string{{"user_id", s.UserID}, {"agent_id", s.AgentID}, {"run_id", s.RunID}}
	if w == protocol.MemorySync {
		by = [][2]string{{"end_user", s.EndUser}}
	}
	for _, b := range by {
		if b[1] == "" {
			continue
		}
		h := sha256.New()
		for _, part := range []string{workspace, string(w), b[0], b[1]} {
			var n [8]byte
			binary.BigEndian.PutUint64(n[:], uint64(len(part)))
			h.Write(n[:])
			h.Write([]byte(part))
		}
		out = append(out, hex.EncodeToString(h.Sum(nil)))
	}
	return out
}

// names are the parts of a scope that say something.
func names(s protocol.Scope) map[string]string {
	out := map[string]string{}
	for k, v := range map[string]string{"tenant": s.Tenant, "project": s.Project, "end_user": s.EndUser, "user_id": s.UserID, "agent_id": s.AgentID, "run_id": s.RunID} {
		if v != "" {
			out[k] = v
		}
	}
	return out
}
