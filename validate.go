package memwrite

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits the services state. A call above one is refused before any request.
const (
	MaxCommandBytes = 250_000 // a FishMem write as JSON
	MaxMessages     = 500     // messages of one FishMem write
	MaxScope        = 512     // characters of one scope id
	maxSource       = 64      // characters of source and event_type
)

func itoa(n int) string { return strconv.Itoa(n) }

// checkText refuses what would change on the way: JSON turns invalid UTF-8 into
// other characters, and with them the identity of a turn.
func checkText(op, field, s string) error {
	switch {
	case strings.TrimSpace(s) == "":
		return invalid(op, field, "is empty; at least one visible character is needed")
	case !utf8.ValidString(s):
		return invalid(op, field, "is not valid UTF-8")
	}
	return nil
}

// checkHeader refuses what cannot stand in a header: RFC 9110, 5.5 forbids NUL,
// CR and LF, and the services know no other control characters.
func checkHeader(op, field, v string) *Error {
	if strings.TrimSpace(v) == "" {
		return invalid(op, field, "is empty")
	}
	if v != strings.TrimSpace(v) {
		return invalid(op, field, "begins or ends with a space, which a header would lose")
	}
	for i := range len(v) {
		if v[i] < ' ' || v[i] == 0x7f {
			return invalid(op, field, "holds the control character 0x"+strconv.FormatInt(int64(v[i]), 16)+" at byte "+itoa(i)+"; none can stand in a header")
		}
	}
	return nil
}

func checkLength(op, field, v string, limit int) error {
	if n := utf8.RuneCountInString(v); n > limit {
		return invalid(op, field, "has "+itoa(n)+" characters, the limit is "+itoa(limit))
	}
	return nil
}

// checkObject wants an object or nothing. It is sent as it is, apart from
// spaces between its parts.
func checkObject(op, field string, m json.RawMessage) error {
	if len(m) == 0 {
		return nil
	}
	if t := bytes.TrimSpace(m); len(t) == 0 || t[0] != '{' || !json.Valid(t) {
		return invalid(op, field, "is not a JSON object")
	}
	return nil
}

// encodeBody is json.Marshal without the escapes for HTML, so that raw
// metadata keeps its spelling.
func encodeBody(op string, v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, invalid(op, "request", "cannot be written as JSON")
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// ptr is nil for an empty string: an unset field is absent, never empty.
func ptr[T ~string](s T) *T {
	if s == "" {
		return nil
	}
	return &s
}
