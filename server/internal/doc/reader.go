package doc

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"time"

	"github.com/memwrite/memwrite-go/internal/jsonwalk"
)

// reader goes through a JSON document once. A null leaves what it is for as it
// is, and a member that is not known is passed over.
type reader struct{ jsonwalk.Reader }

// read reads a whole document. The error says nothing of it.
func read(b []byte, member func(*reader, []byte)) error {
	r := &reader{jsonwalk.Of(b)}
	r.object(func(name []byte) { member(r, name) })
	return r.End()
}

func (r *reader) object(member func(name []byte)) {
	if !r.Null() {
		r.Object(member)
	}
}

// arrayOf keeps nil apart from empty.
func arrayOf[T any](r *reader, one func(*T)) []T {
	if r.Null() {
		return nil
	}
	out := []T{}
	r.Array(func() {
		var v T
		one(&v)
		out = append(out, v)
	})
	return out
}

func (r *reader) text() string {
	if r.Null() {
		return ""
	}
	t := r.Text()
	if s, ok := common[string(t)]; ok {
		return s
	}
	return string(t)
}

// common are words that most documents hold.
var common = map[string]string{}

func init() {
	for _, s := range []string{"", "PENDING", "RUNNING", "RETRYING", "SUCCEEDED", "FAILED", "none", "pending", "ready", "credits", "adds", "STORED", "fact", "default"} {
		common[s] = s
	}
}

func (r *reader) texts() []string { return arrayOf(r, func(s *string) { *s = r.text() }) }

func (r *reader) maybe() *string {
	if r.Null() {
		return nil
	}
	s := r.text()
	return &s
}

func (r *reader) number() int64 {
	if r.Null() {
		return 0
	}
	n, err := strconv.ParseInt(string(r.Number()), 10, 64)
	if err != nil {
		r.Fail()
	}
	return n
}

func (r *reader) float() *float64 {
	if r.Null() {
		return nil
	}
	f, err := strconv.ParseFloat(string(r.Number()), 64)
	if err != nil {
		r.Fail()
	}
	return &f
}

func (r *reader) yes() bool { return !r.Null() && r.Bool() }

// hash reads what is no hash as far as it goes, as copying it would.
func (r *reader) hash() (h [32]byte) {
	if r.Null() {
		return h
	}
	t := r.Text()
	var room [64]byte
	if base64.StdEncoding.DecodedLen(len(t)) > len(room) {
		r.Fail()
		return h
	}
	n, err := base64.StdEncoding.Decode(room[:], t)
	if err != nil {
		r.Fail()
	}
	copy(h[:], room[:n])
	return h
}

func (r *reader) instant() (t time.Time) {
	if !r.Null() && t.UnmarshalText(r.Text()) != nil {
		r.Fail()
	}
	return t
}

// any is for what is rare.
func (r *reader) any(v any) {
	if json.Unmarshal(r.Value(), v) != nil {
		r.Fail()
	}
}

// skip passes over a value.
func (r *reader) skip() { r.Value() }
