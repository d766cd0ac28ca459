package service

import (
	"bytes"
	"encoding/json"
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
	if !json.Valid(body) { // from here on the input is JSON: the walk only looks for ends
		return nil, false
	}
	i := space(body, 0)
	if body[i] != '{' {
		return nil, false
	}
	for i = space(body, i+1); body[i] != '}'; {
		end := value(body, i)
		name := body[i+1 : end-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			var s string
			if json.Unmarshal(body[i:end], &s) != nil {
				return nil, false
			}
			name = []byte(s)
		}
		i = space(body, space(body, end)+1) // the colon
		end = value(body, i)
		out = append(out, member{name, json.RawMessage(body[i:end:end])})
		if i = space(body, end); body[i] == ',' {
			i = space(body, i+1)
		}
	}
	return out, true
}

// space is where the next token begins.
func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

// value is where the value that begins at i ends.
func value(b []byte, i int) int {
	depth, inString := 0, false
	for ; i < len(b); i++ {
		switch c := b[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			if inString = !inString; !inString && depth == 0 {
				return i + 1
			}
		case inString:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
			if depth < 0 { // the end of what a number or a word stands in
				return i
			}
		case depth == 0 && (c == ',' || c == ' ' || c == '\t' || c == '\r' || c == '\n'):
			return i
		}
	}
	return i
}
