package memwrite

import (
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"
)

// decodeInto is json.Unmarshal for a type whose set takes most documents field
// by field. A set that is false has json.Unmarshal begin anew, so no document
// is read another way than by it.
func decodeInto[T any](doc []byte, v *T, set func(v *T, name, value []byte) bool) error {
	if json.Valid(doc) && fields(doc, func(name, value []byte) bool { return set(v, name, value) }) {
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

// The setters below are false for a value of another type, and for a string
// with an escape. As in encoding/json a null changes nothing.

func setText(to *string, value []byte) bool {
	inner, ok := plain(value)
	if ok {
		*to = string(inner)
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

// setID also takes a null: there is no id then.
func setID(to **int64, value []byte) bool {
	if isNull(value) {
		*to = nil
		return true
	}
	id := new(int64)
	*to = id
	return setInt(id, value)
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
	s := scan{doc: value}
	if !s.take('[') {
		return false
	}
	texts := []string{}
	for !s.take(']') {
		inner, ok := plain(s.value())
		if !ok {
			return false
		}
		texts = append(texts, string(inner))
		if !s.take(',') && s.peek() != ']' {
			return false
		}
	}
	*to = texts
	return true
}

func isNull(value []byte) bool { return string(value) == "null" }

func isNumber(value []byte) bool {
	return len(value) > 0 && (value[0] == '-' || value[0] >= '0' && value[0] <= '9')
}
