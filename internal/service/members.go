package service

import (
	"encoding/json"

	"github.com/memwrite/memwrite-go/internal/jsonwalk"
)

// member is one field of a JSON object; both slices are of the body itself.
type member struct {
	name []byte
	raw  json.RawMessage
}

// membersOf takes a JSON object apart without copying it. Of two fields of one
// name the later one counts, as for encoding/json. They are appended to out.
// false: it is no object.
func membersOf(body []byte, out []member) ([]member, bool) {
	ok := jsonwalk.Fields(body, func(name, value []byte) bool {
		out = append(out, member{name, value})
		return true
	})
	return out, ok
}
