package service

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/memwrite/memwrite-go/internal/jsonwalk"
)

// maxDepth is how deep a request's JSON may nest.
const maxDepth = 64

// What can be wrong with a body before its fields are looked at.
var (
	errTooLarge    = errors.New("the request body is too large")
	errContentType = errors.New("the content type must be application/json")
	errNotObject   = errors.New("the body must be one JSON object")
	errTooDeep     = fmt.Errorf("the JSON nests deeper than %d levels", maxDepth)
)

// issue is one thing wrong with one field. Messages name fields and limits and
// never repeat a value: a value is somebody's memory.
type issue struct {
	Field   string
	Type    string // missing, type, length, range, null, value
	Message string
}

// object is a request body whose fields are taken out one at a time. Fields
// nobody asks for are dropped, as the live services do. Problems are collected,
// so that an answer can name all of them.
type object struct {
	members []member
	prefix  string
	noNulls bool // a null for an optional field is a problem, not an absence
	issues  *[]issue
	own     []issue   // what issues of an object that is no child's lead to
	room    [6]member // of members, enough for most
}

// Whole is a request body that was read already. Whole gives all of it, for
// nobody to change, or nil if that is not known.
type Whole interface{ Whole() []byte }

// readObject reads the whole body, at most limit bytes, as one JSON object.
func readObject(w http.ResponseWriter, r *http.Request, limit int64, noNulls bool) (*object, error) {
	if sent := r.Header.Get("Content-Type"); sent != "application/json" {
		if media, _, err := mime.ParseMediaType(sent); err != nil || media != "application/json" {
			return nil, errContentType
		}
	}
	if r.ContentLength > limit {
		return nil, errTooLarge
	}
	var body []byte
	var err error
	if b, ok := r.Body.(Whole); ok && r.ContentLength > 0 {
		body = b.Whole()
	}
	switch {
	case body != nil: // nothing is left to read
	case r.ContentLength > 0:
		body = make([]byte, r.ContentLength)
		_, err = io.ReadFull(r.Body, body)
	default:
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	}
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return nil, errTooLarge
		}
		return nil, err
	}
	return parseObject(body, noNulls)
}

// parseObject is readObject for bytes that are here already.
func parseObject(body []byte, noNulls bool) (*object, error) {
	if !utf8.Valid(body) {
		return nil, errNotObject
	}
	if depth(body) > maxDepth {
		return nil, errTooDeep
	}
	o := &object{noNulls: noNulls}
	o.issues = &o.own
	var ok bool
	if o.members, ok = membersOf(body, o.room[:0]); !ok {
		return nil, errNotObject
	}
	return o, nil
}

// depth is how deep the brackets outside strings nest. It reads bytes that may
// not be JSON at all, so that a parser never has to recurse into a trap.
func depth(body []byte) int {
	var now, deepest int
	inString := false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}

func (o *object) fail(field, kind, format string, args ...any) {
	*o.issues = append(*o.issues, issue{Field: o.prefix + field, Type: kind, Message: fmt.Sprintf(format, args...)})
}

// member is a field's JSON as it was sent, or nil.
func (o *object) member(field string) json.RawMessage {
	for i := len(o.members) - 1; i >= 0; i-- {
		if string(o.members[i].name) == field {
			return o.members[i].raw
		}
	}
	return nil
}

// raw is a field's JSON, or nil when it is absent (or null, where that means
// the same).
func (o *object) raw(field string) json.RawMessage {
	v := o.member(field)
	if v == nil {
		return nil
	}
	if string(v) == "null" {
		if o.noNulls {
			o.fail(field, "null", "must be left out rather than null")
		}
		return nil
	}
	return v
}

func (o *object) has(field string) bool {
	v := o.member(field)
	return v != nil && string(v) != "null"
}

// text is a string field; max counts characters, 0 means no limit of its own.
func (o *object) text(field string, max int) (string, bool) {
	raw := o.raw(field)
	if raw == nil {
		return "", false
	}
	s, ok := textOf(raw)
	if !ok {
		o.fail(field, "type", "must be a string")
		return "", false
	}
	if halfPair(raw, s) {
		o.fail(field, "value", "must not hold half of a surrogate pair")
		return "", false
	}
	if max > 0 && utf8.RuneCountInString(s) > max {
		o.fail(field, "length", "must be at most %d characters", max)
		return "", false
	}
	return s, true
}

// textOf reads a JSON string.
func textOf(raw json.RawMessage) (string, bool) {
	s, ok := jsonwalk.Unquote(raw)
	return string(s), ok
}

// required is text that must be there.
func (o *object) required(field string, max int) string {
	if !o.has(field) {
		o.fail(field, "missing", "is required")
		return ""
	}
	s, _ := o.text(field, max)
	return s
}

func (o *object) boolean(field string, absent bool) bool {
	raw := o.raw(field)
	switch string(raw) {
	case "":
		return absent
	case "true":
		return true
	case "false":
		return false
	}
	o.fail(field, "type", "must be a boolean")
	return absent
}

// integer is a whole number within [low, high]; nil when absent.
func (o *object) integer(field string, low, high int64) *int64 {
	raw := o.raw(field)
	if raw == nil {
		return nil
	}
	var n int64
	if json.Unmarshal(raw, &n) != nil {
		o.fail(field, "type", "must be a whole number")
		return nil
	}
	if n < low || n > high {
		o.fail(field, "range", "must be between %d and %d", low, high)
		return nil
	}
	return &n
}

// number is a number within [low, high]; nil when absent.
func (o *object) number(field string, low, high float64) *float64 {
	raw := o.raw(field)
	if raw == nil {
		return nil
	}
	var n float64
	if json.Unmarshal(raw, &n) != nil || math.IsNaN(n) {
		o.fail(field, "type", "must be a number")
		return nil
	}
	if n < low || n > high {
		o.fail(field, "range", "must be between %g and %g", low, high)
		return nil
	}
	return &n
}

// list is an array of min to max elements; nil when absent.
func (o *object) list(field string, min, max int) []json.RawMessage {
	raw := o.raw(field)
	if raw == nil {
		return nil
	}
	var items []json.RawMessage
	if raw[0] != '[' || json.Unmarshal(raw, &items) != nil {
		o.fail(field, "type", "must be an array")
		return nil
	}
	if len(items) < min || len(items) > max {
		o.fail(field, "length", "must hold %d to %d items", min, max)
		return nil
	}
	return items
}

// texts is a list of strings.
func (o *object) texts(field string, max int) []string {
	items := o.list(field, 0, max)
	out := make([]string, 0, len(items))
	for _, raw := range items {
		s, ok := textOf(raw)
		if !ok || halfPair(raw, s) {
			o.fail(field, "type", "must be an array of strings")
			return nil
		}
		out = append(out, s)
	}
	return out
}

// document is a JSON object kept as the bytes it came in, so that no number in
// it loses a digit; nil when absent.
func (o *object) document(field string) json.RawMessage {
	raw := o.raw(field)
	if raw == nil {
		return nil
	}
	if raw[0] != '{' {
		o.fail(field, "type", "must be an object")
		return nil
	}
	return bytes.Clone(raw) // it outlives the body
}

// child reads an element of a list as an object that reports to this one.
func (o *object) child(field string, i int, raw json.RawMessage) (*object, bool) {
	members, ok := membersOf(raw, nil)
	if !ok {
		o.fail(fmt.Sprintf("%s.%d", field, i), "type", "must be an object")
		return nil, false
	}
	return &object{members: members, prefix: fmt.Sprintf("%s%s.%d.", o.prefix, field, i), noNulls: o.noNulls, issues: o.issues}, true
}

// problems is what was found wrong so far.
func (o *object) problems() []issue { return *o.issues }

func blank(s string) bool { return strings.TrimSpace(s) == "" }
