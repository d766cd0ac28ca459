package memwrite

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// origin is what Add left in a memory's metadata: which write made it.
type origin struct {
	Hash string `json:"memwrite_text_sha256"`
	Ref  string `json:"memwrite_client_ref"`
}

// originOf is the zero origin for a memory that does not say.
func originOf(metadata json.RawMessage) origin {
	if hash, ok := plainField(metadata, HashField); ok {
		if ref, ok := plainField(metadata, RefField); ok {
			return origin{hash, ref}
		}
	}
	var o origin
	if len(metadata) == 0 || json.Unmarshal(metadata, &o) != nil {
		return origin{}
	}
	return o
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

// plainField is the text of a field of the object doc, or "" when it is not
// there. It is looked for among the bytes, and ok is false where these do not
// settle it: in an object with another one inside, with an escape, or with a
// space behind the name. Every answer to an Add is asked twice, and decoding
// would be a tenth of what the call costs.
//
// doc is valid JSON, cut out of an answer that was decoded. Without an escape a
// quote stands at an end of a string and nowhere else.
func plainField(doc []byte, name string) (text string, ok bool) {
	if bytes.Count(doc, []byte{'{'}) != 1 || bytes.IndexByte(doc, '\\') >= 0 {
		return "", false
	}
	quoted := `"` + name + `"`
	at := bytes.Index(doc, []byte(quoted))
	if at < 0 {
		return "", true
	}
	rest := doc[at+len(quoted):]
	if bytes.Contains(rest, []byte(quoted)) || !bytes.HasPrefix(rest, []byte(`:"`)) {
		return "", false
	}
	rest = rest[2:]
	end := bytes.IndexByte(rest, '"')
	if end < 0 || !utf8.Valid(rest[:end]) {
		return "", false
	}
	return string(rest[:end]), true
}
