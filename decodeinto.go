package memwrite

import (
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/memwrite/memwrite-go/internal/jsonwalk"
)

// decodeInto is json.Unmarshal for a type whose set takes most documents field
// by field: the few that are read with every Add, where decoding by reflection
// costs a fifth of a call over loopback. A set that is false has json.Unmarshal
// begin anew, so no document is read another way than by it.
func decodeInto[T any](doc []byte, v *T, set func(v *T, name, value []byte) bool) error {
	if jsonwalk.Fields(doc, func(name, value []byte) bool { return set(v, name, value) }) {
		return nil
	}
	*v = *new(T)
	return json.Unmarshal(doc, v)
}

// unknownField takes a name that a set does not know. encoding/json does not
// tell upper from lower case, so one that is not plain lower case is its to say.
func unknownField(name []byte) bool {
	return !slices.ContainsFunc(name, func(c byte) bool { return c >= utf8.RuneSelf || c >= 'A' && c <= 'Z' })
}

// The setters below are false for a value of another type. As in encoding/json a
// null changes nothing.

func setText(to *string, value []byte) bool {
	s, ok := jsonwalk.Unquote(value)
	if ok {
		*to = string(s)
	}
	return ok || isNull(value)
}

func setInt(to *int64, value []byte) bool {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err == nil {
		*to = n
	}
	return err == nil || isNull(value)
}

func setFloat(to *float64, value []byte) bool {
	if !isNumber(value) { // ParseFloat knows more numbers than JSON
		return isNull(value)
	}
	f, err := strconv.ParseFloat(string(value), 64)
	if err == nil {
		*to = f
	}
	return err == nil
}

// setOrNone has set take a value; after a null there is none.
func setOrNone[T any](to **T, value []byte, set func(*T, []byte) bool) bool {
	if isNull(value) {
		*to = nil
		return true
	}
	*to = new(T)
	return set(*to, value)
}

func setBool(to *bool, value []byte) bool {
	switch string(value) {
	case "true":
		*to = true
	case "false":
		*to = false
	default:
		return isNull(value)
	}
	return true
}

func setTexts(to *[]string, value []byte) bool {
	texts := make([]string, 0, 2) // as many as most have
	r := jsonwalk.Of(value)
	r.Array(func() { texts = append(texts, string(r.Text())) })
	if r.End() != nil {
		return false
	}
	*to = texts
	return true
}

func isNull(value []byte) bool { return string(value) == "null" }

func isNumber(value []byte) bool {
	return len(value) > 0 && (value[0] == '-' || value[0] >= '0' && value[0] <= '9')
}
