package doc

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strconv"
	"time"
	"unicode/utf8"
)

// errSyntax says nothing of the document.
var errSyntax = errors.New("it is not a document of this kind")

// reader goes through a JSON document once. A null leaves what it is for as it
// is, and a member that is not known is passed over.
type reader struct {
	b   []byte
	i   int
	err error
}

// read reads a whole document.
func read(b []byte, member func(*reader, []byte)) error {
	r := &reader{b: b}
	r.object(func(name []byte) { member(r, name) })
	if r.space(); r.i != len(r.b) {
		r.fail(errSyntax)
	}
	return r.err
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.i = len(r.b)
}

func (r *reader) space() {
	for r.i < len(r.b) {
		switch r.b[r.i] {
		case ' ', '\t', '\n', '\r':
			r.i++
		default:
			return
		}
	}
}

// peek is the next byte that counts; 0 at the end.
func (r *reader) peek() byte {
	if r.space(); r.i < len(r.b) {
		return r.b[r.i]
	}
	return 0
}

func (r *reader) take(c byte) bool {
	if r.peek() != c || r.i >= len(r.b) {
		return false
	}
	r.i++
	return true
}

func (r *reader) expect(c byte) {
	if !r.take(c) {
		r.fail(errSyntax)
	}
}

// null takes a null.
func (r *reader) null() bool { return r.peek() == 'n' && r.literal("null") }

func (r *reader) literal(s string) bool {
	if bytes.HasPrefix(r.b[r.i:], []byte(s)) {
		r.i += len(s)
		return true
	}
	return false
}

func (r *reader) object(member func(name []byte)) {
	if r.null() {
		return
	}
	r.list('{', '}', func() {
		name := r.token()
		r.expect(':')
		if r.err == nil {
			member(name)
		}
	})
}

func (r *reader) list(open, end byte, one func()) {
	r.expect(open)
	if r.take(end) {
		return
	}
	for r.err == nil {
		one()
		if r.take(end) {
			return
		}
		r.expect(',')
	}
}

// arrayOf keeps nil apart from empty.
func arrayOf[T any](r *reader, one func(*T)) []T {
	if r.null() {
		return nil
	}
	out := []T{}
	r.list('[', ']', func() {
		var v T
		one(&v)
		out = append(out, v)
	})
	return out
}

// token is a string that is good until the document changes.
func (r *reader) token() []byte {
	r.expect('"')
	from, plain := r.i, true
	for ; r.i < len(r.b); r.i++ {
		switch c := r.b[r.i]; {
		case c == '"':
			s := r.b[from:r.i]
			r.i++
			if plain {
				return s
			}
			if bytes.IndexByte(s, '\\') < 0 && utf8.Valid(s) && !control(s) {
				return s
			}
			var out string
			if err := json.Unmarshal(r.b[from-1:r.i], &out); err != nil {
				r.fail(errSyntax)
			}
			return []byte(out)
		case c == '\\':
			plain = false
			r.i++
		case c < ' ' || c >= utf8.RuneSelf:
			plain = false
		}
	}
	r.fail(errSyntax)
	return nil
}

func control(s []byte) bool { return bytes.IndexFunc(s, func(c rune) bool { return c < ' ' }) >= 0 }

func (r *reader) text() string {
	if r.null() {
		return ""
	}
	t := r.token()
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
	if r.null() {
		return nil
	}
	s := r.text()
	return &s
}

// digits are the bytes of a number.
func (r *reader) digits() []byte {
	r.space()
	from := r.i
	for r.i < len(r.b) && (r.b[r.i] >= '0' && r.b[r.i] <= '9' || bytes.IndexByte([]byte("+-.eE"), r.b[r.i]) >= 0) {
		r.i++
	}
	return r.b[from:r.i]
}

func (r *reader) number() int64 {
	if r.null() {
		return 0
	}
	d := r.digits()
	n, err := strconv.ParseInt(string(d), 10, 64)
	if err != nil || d[0] == '+' {
		r.fail(errSyntax)
	}
	return n
}

func (r *reader) float() *float64 {
	if r.null() {
		return nil
	}
	var f float64
	if json.Unmarshal(r.digits(), &f) != nil {
		r.fail(errSyntax)
	}
	return &f
}

func (r *reader) yes() bool {
	switch r.peek() {
	case 't':
		if r.literal("true") {
			return true
		}
	case 'f':
		if r.literal("false") {
			return false
		}
	case 'n':
		if r.literal("null") {
			return false
		}
	}
	r.fail(errSyntax)
	return false
}

// hash reads what is no hash as far as it goes, as copying it would.
func (r *reader) hash() (h [32]byte) {
	if r.null() {
		return h
	}
	t := r.token()
	var room [64]byte
	if base64.StdEncoding.DecodedLen(len(t)) > len(room) {
		r.fail(errSyntax)
		return h
	}
	n, err := base64.StdEncoding.Decode(room[:], t)
	if err != nil {
		r.fail(errSyntax)
	}
	copy(h[:], room[:n])
	return h
}

func (r *reader) instant() (t time.Time) {
	if r.null() {
		return t
	}
	if s := r.token(); r.err == nil && t.UnmarshalText(s) != nil {
		r.fail(errSyntax)
	}
	return t
}

// any is for what is rare.
func (r *reader) any(v any) {
	r.space()
	from := r.i
	r.skip()
	if r.err == nil && json.Unmarshal(r.b[from:r.i], v) != nil {
		r.fail(errSyntax)
	}
}

// maxDeep is how deep what is passed over may be.
const maxDeep = 100

// skip passes over a value.
func (r *reader) skip() { r.skipped(0) }

func (r *reader) skipped(deep int) {
	switch c := r.peek(); {
	case deep > maxDeep:
		r.fail(errSyntax)
	case c == '{':
		r.list('{', '}', func() {
			r.token()
			r.expect(':')
			r.skipped(deep + 1)
		})
	case c == '[':
		r.list('[', ']', func() { r.skipped(deep + 1) })
	case c == '"':
		r.token()
	case c == 't' || c == 'f':
		r.yes()
	case c == 'n':
		if !r.literal("null") {
			r.fail(errSyntax)
		}
	default:
		if len(r.digits()) == 0 {
			r.fail(errSyntax)
		}
	}
}
