package memwrite

import (
	"encoding/json"

	"github.com/memwrite/memwrite-go/internal/jsonwalk"
)

// origin is what Add left in a memory's metadata: which write made it.
type origin struct {
	Hash string `json:"memwrite_text_sha256"`
	Ref  string `json:"memwrite_client_ref"`
}

// originOf is the zero origin for a memory that does not say.
func originOf(metadata json.RawMessage) origin {
	var o origin
	if jsonwalk.Fields(metadata, o.set) {
		return o
	}
	o = origin{}
	if len(metadata) == 0 || json.Unmarshal(metadata, &o) != nil {
		return origin{}
	}
	return o
}

func (o *origin) set(name, value []byte) bool {
	switch string(name) {
	case HashField:
		return setText(&o.Hash, value)
	case RefField:
		return setText(&o.Ref, value)
	}
	return unknownField(name)
}

// of gives the reference that made the memory, and whether it is known to be
// another write than req. Every Add leaves its own reference, so a memory with
// a hash and without one was made by a write that had none.
func (o origin) of(req AddRequest) (owner string, matched bool) {
	switch {
	case o == origin{}:
		return "", false
	case o.Ref == "" && req.Ref.IsZero():
		return "", o.Hash != textHash(req.Text)
	}
	return o.Ref, o.Ref != req.Ref.String()
}
