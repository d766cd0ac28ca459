package service

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// filtered is a record as conditions see it. Its metadata is read when the
// first condition asks for it.
type filtered struct {
	*Record
	accesses access
	meta     map[string]any
	read     bool
}

func (f allOf) holds(r *filtered) bool {
	for _, part := range f {
		if !part.holds(r) {
			return false
		}
	}
	return true
}

func (f anyOf) holds(r *filtered) bool {
	return slices.ContainsFunc(f, func(part filter) bool { return part.holds(r) })
}

func (f notOf) holds(r *filtered) bool { return !f.inner.holds(r) }

// holds judges a condition. A field that is not there meets nothing but
// exists false: also ne and nin are about a value.
func (c condition) holds(r *filtered) bool {
	have := r.value(c)
	if c.operator == "exists" {
		return (have != nil) == c.values[0].(bool)
	}
	if have == nil {
		return false
	}
	want := c.values[0]
	switch c.operator {
	case "eq":
		return equal(have, want)
	case "ne":
		return !equal(have, want)
	case "in":
		return c.member(have)
	case "nin":
		return !c.member(have)
	case "contains":
		return contains(have, want.(string), false)
	case "icontains":
		return contains(have, want.(string), true)
	}
	order, ok := compare(have, want)
	if !ok {
		return false
	}
	switch c.operator {
	case "gt":
		return order > 0
	case "gte":
		return order >= 0
	case "lt":
		return order < 0
	default:
		return order <= 0
	}
}

func (c condition) member(have any) bool {
	return slices.ContainsFunc(c.values, func(want any) bool {
		if list, ok := have.([]any); ok {
			return slices.ContainsFunc(list, func(v any) bool { return equal(v, want) })
		}
		return equal(have, want)
	})
}

// value is what the record has in the condition's field, or nil.
func (r *filtered) value(c condition) any {
	if c.path != nil {
		return r.metadata(c.path)
	}
	switch c.field {
	case "id":
		return r.ID
	case "content":
		return r.Text
	case "memory_type":
		return present(r.Type)
	case "importance":
		return r.Importance
	case "access_count":
		return float64(r.accesses.count)
	case "created_at":
		return moment(r.CreatedAt)
	case "updated_at":
		return moment(r.UpdatedAt)
	case "last_accessed_at":
		return moment(r.accesses.last)
	case "event_date":
		at, _ := time.Parse(time.RFC3339Nano, r.EventDate)
		return moment(at)
	}
	return nil // subject and attribute: this server knows neither
}

func present(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// moment is a time as the wire prints it, so that a printed one is equal.
func moment(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Truncate(time.Millisecond)
}

func (r *filtered) metadata(path []string) any {
	if !r.read {
		r.read = true
		_ = json.Unmarshal(r.Metadata, &r.meta)
	}
	var now any = r.meta
	for _, segment := range path {
		m, ok := now.(map[string]any)
		if !ok {
			return nil
		}
		now = m[segment]
	}
	return now
}

func equal(a, b any) bool {
	if at, ok := a.(time.Time); ok {
		bt, ok := b.(time.Time)
		return ok && at.Equal(bt)
	}
	switch a.(type) {
	case string, float64, bool:
		return a == b
	}
	return false // what is no scalar is equal to none
}

func compare(a, b any) (int, bool) {
	switch a := a.(type) {
	case float64:
		b, ok := b.(float64)
		return cmp.Compare(a, b), ok
	case string:
		b, ok := b.(string)
		return cmp.Compare(a, b), ok
	case time.Time:
		b, ok := b.(time.Time)
		return a.Compare(b), ok
	}
	return 0, false
}

// contains finds a part of a text, or a whole element of a list.
func contains(have any, want string, anyCase bool) bool {
	switch have := have.(type) {
	case string:
		if anyCase {
			return strings.Contains(strings.ToLower(have), strings.ToLower(want))
		}
		return strings.Contains(have, want)
	case []any:
		return slices.ContainsFunc(have, func(v any) bool {
			s, ok := v.(string)
			return ok && (s == want || anyCase && strings.EqualFold(s, want))
		})
	}
	return false
}
