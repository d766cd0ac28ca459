package service

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of a search filter; the live service states the same ones.
const (
	maxFilterDepth    = 8
	maxFilterLeaves   = 100
	maxFilterChildren = 20
	maxFilterValues   = 100
	maxFilterText     = 1024 // characters of a string value
	maxEqualFields    = 20   // of the map form
	maxEqualField     = 128  // characters of a field's name there
)

// filter is what a record has to be for a search to give it. There are two
// forms on the wire: a map of metadata fields that must be equal, and an
// expression of conditions under and, or and not.
type filter interface{ holds(r *filtered) bool }

type (
	allOf     []filter
	anyOf     []filter
	notOf     struct{ inner filter }
	condition struct {
		field    string
		path     []string // of a metadata field
		operator string
		values   []any // string, float64, bool or, of a date field, time.Time
	}
)

// readFilter takes the filters of a search out of its body; absent is a filter
// that holds for everything.
func readFilter(o *object) (filter, *failure) {
	raw := o.document("filters")
	if raw == nil {
		return allOf{}, nil
	}
	f, err := parseFilter(raw)
	if err != nil {
		return nil, fail(http.StatusBadRequest, "INVALID_FILTER", err.Error())
	}
	return f, nil
}

// filterError names the rule and never the value, which is somebody's memory.
type filterError string

func (e filterError) Error() string { return string(e) }

func badFilter(format string, args ...any) error { return filterError(fmt.Sprintf(format, args...)) }

// parseFilter reads either form.
func parseFilter(raw json.RawMessage) (filter, error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil, badFilter("filters must be an object")
	}
	if isExpression(fields) {
		leaves := 0
		return parseExpression(raw, 1, &leaves)
	}
	return parseEqualities(fields)
}

// isExpression tells the forms apart: a map holds scalars only, so a logical
// word over anything else cannot be one of its fields.
func isExpression(fields map[string]json.RawMessage) bool {
	for _, word := range []string{"and", "or", "not"} {
		if v, ok := fields[word]; ok && len(v) > 0 && (v[0] == '{' || v[0] == '[') {
			return true
		}
	}
	_, field := fields["field"]
	_, operator := fields["operator"]
	return field && operator
}

func parseEqualities(fields map[string]json.RawMessage) (filter, error) {
	if len(fields) > maxEqualFields {
		return nil, badFilter("a map of equal fields holds at most %d", maxEqualFields)
	}
	out := make(allOf, 0, len(fields))
	for name, raw := range fields {
		if name == "" || utf8.RuneCountInString(name) > maxEqualField {
			return nil, badFilter("a field's name is 1 to %d characters", maxEqualField)
		}
		v, err := scalar(raw)
		if err != nil {
			return nil, err
		}
		out = append(out, condition{field: "metadata", path: []string{name}, operator: "eq", values: []any{v}})
	}
	return out, nil
}

func parseExpression(raw json.RawMessage, depth int, leaves *int) (filter, error) {
	if depth > maxFilterDepth {
		return nil, badFilter("a filter nests at most %d levels", maxFilterDepth)
	}
	var node map[string]json.RawMessage
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &node) != nil {
		return nil, badFilter("every part of a filter is an object")
	}
	if _, leaf := node["field"]; leaf {
		if *leaves++; *leaves > maxFilterLeaves {
			return nil, badFilter("a filter holds at most %d conditions", maxFilterLeaves)
		}
		return parseCondition(node)
	}
	if len(node) != 1 {
		return nil, badFilter("a logical part holds exactly one of and, or and not")
	}
	if inner, ok := node["not"]; ok {
		f, err := parseExpression(inner, depth+1, leaves)
		return notOf{f}, err
	}
	for _, word := range []string{"and", "or"} {
		list, ok := node[word]
		if !ok {
			continue
		}
		var parts []json.RawMessage
		if list[0] != '[' || json.Unmarshal(list, &parts) != nil || len(parts) < 1 || len(parts) > maxFilterChildren {
			return nil, badFilter("%s holds an array of 1 to %d parts", word, maxFilterChildren)
		}
		out := make([]filter, 0, len(parts))
		for _, part := range parts {
			f, err := parseExpression(part, depth+1, leaves)
			if err != nil {
				return nil, err
			}
			out = append(out, f)
		}
		if word == "or" {
			return anyOf(out), nil
		}
		return allOf(out), nil
	}
	return nil, badFilter("a part of a filter is a condition, and, or or not")
}

// kindOfField is what a field's values are.
type kindOfField int

const (
	textField kindOfField = iota + 1
	numberField
	dateField
	freeField // metadata: whatever the caller wrote
)

var filterFields = map[string]kindOfField{
	"id": textField, "content": textField, "memory_type": textField, "subject": textField, "attribute": textField,
	"importance": numberField, "access_count": numberField,
	"created_at": dateField, "updated_at": dateField, "event_date": dateField, "last_accessed_at": dateField,
}

var metadataPath = regexp.MustCompile(`^metadata(\.[A-Za-z0-9_-]+)+$`)

// fieldOf reads a condition's field. Names that mean something to a prototype
// are refused, as the live service does.
func fieldOf(name string) (kind kindOfField, path []string, err error) {
	if kind, ok := filterFields[name]; ok {
		return kind, nil, nil
	}
	if len(name) < 10 || len(name) > 265 || !metadataPath.MatchString(name) {
		return 0, nil, badFilter("a condition's field is a field of a memory or metadata.PATH of letters, digits, _ and -")
	}
	path = strings.Split(name, ".")[1:]
	for _, segment := range path {
		if segment == "__proto__" || segment == "prototype" || segment == "constructor" {
			return 0, nil, badFilter("a metadata path must not name a prototype")
		}
	}
	return freeField, path, nil
}

func parseCondition(node map[string]json.RawMessage) (filter, error) {
	var c condition
	if len(node) != 3 || node["operator"] == nil || node["value"] == nil {
		return nil, badFilter("a condition holds exactly field, operator and value")
	}
	if json.Unmarshal(node["field"], &c.field) != nil || json.Unmarshal(node["operator"], &c.operator) != nil {
		return nil, badFilter("field and operator of a condition are strings")
	}
	kind, path, err := fieldOf(c.field)
	if err != nil {
		return nil, err
	}
	c.path = path
	raws := []json.RawMessage{node["value"]}
	switch c.operator {
	case "eq", "ne":
	case "in", "nin":
		if raws[0][0] != '[' || json.Unmarshal(node["value"], &raws) != nil || len(raws) < 1 || len(raws) > maxFilterValues {
			return nil, badFilter("the value of %s is an array of 1 to %d", c.operator, maxFilterValues)
		}
	case "gt", "gte", "lt", "lte":
		if kind == textField {
			return nil, badFilter("%s is for numbers, dates and metadata", c.operator)
		}
	case "contains", "icontains":
		if kind != textField && kind != freeField {
			return nil, badFilter("%s is for text and metadata", c.operator)
		}
	case "exists":
	default:
		return nil, badFilter("the operator is one of eq, ne, in, nin, gt, gte, lt, lte, contains, icontains and exists")
	}
	for _, raw := range raws {
		v, err := scalar(raw)
		if err == nil {
			v, err = typed(c.operator, kind, v)
		}
		if err != nil {
			return nil, err
		}
		c.values = append(c.values, v)
	}
	return c, nil
}

// scalar is a string, a number or a boolean.
func scalar(raw json.RawMessage) (any, error) {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return nil, badFilter("a filter's value must be readable")
	}
	switch v := v.(type) {
	case float64, bool:
		return v, nil
	case string:
		if utf8.RuneCountInString(v) > maxFilterText {
			return nil, badFilter("a filter's text is at most %d characters", maxFilterText)
		}
		return v, nil
	}
	return nil, badFilter("a filter's value is a string, a number or a boolean")
}

// typed holds a value against what its operator and field take.
func typed(operator string, kind kindOfField, v any) (any, error) {
	text, isText := v.(string)
	_, isNumber := v.(float64)
	switch {
	case operator == "exists":
		if _, ok := v.(bool); !ok {
			return nil, badFilter("the value of exists is a boolean")
		}
		return v, nil
	case operator == "contains" || operator == "icontains" || kind == textField:
		if !isText {
			return nil, badFilter("this condition takes a string")
		}
	case kind == numberField && !isNumber:
		return nil, badFilter("this field takes a number")
	case kind == dateField:
		// Unlike event_date of a write, an offset is fine here.
		at, err := time.Parse(time.RFC3339Nano, text)
		if !isText || err != nil {
			return nil, badFilter("this field takes a full ISO 8601 time")
		}
		return at.UTC().Truncate(time.Millisecond), nil
	case slices.Contains([]string{"gt", "gte", "lt", "lte"}, operator) && !isText && !isNumber:
		return nil, badFilter("%s takes a number or a string", operator)
	}
	return v, nil
}
