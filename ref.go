package memwrite

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of the two identities a Ref can become.
const (
	// MaxClientRef is the longest client_ref the service takes, in characters.
	MaxClientRef = 128
	// MaxIdempotencyKey is the longest Idempotency-Key, in visible ASCII characters.
	MaxIdempotencyKey = 200

	maxKind       = 32 // so that the longest form below still fits MaxClientRef
	maxRefBase    = 80 // kind and id; a version and a content hash fit behind it
	digestDigits  = 40
	contentDigits = 24
)

// Ref is the identity of one record of the caller's: never of an attempt.
//
// It goes out as client_ref or as Idempotency-Key. Refs are values: the same
// parts give the same string in every process and every release, because the
// encoding is frozen. Build one with [NewRef]; a reference made elsewhere
// enters by [RefFromString]. The zero Ref is no identity.
type Ref struct {
	kind, id string
	version  int
	content  string // hex digits, or "" for none
	raw      string // set by RefFromString alone
	fault    string
}

// NewRef names the record id of a kind: NewRef("note", "0001") is "note-0001".
//
// kind is 1 to 32 characters of a-z, 0-9 and "_"; id is any non-empty string.
// Different parts always give different strings: an id that could be read as
// something else (an ending like "-v2", a space, a letter outside ASCII) is
// written in an escaped form, and one too long for the services as a digest.
// A mistake is kept and raised by the call that uses the Ref, or by Err.
func NewRef(kind, id string) Ref {
	r := Ref{kind: kind, id: id}
	switch {
	case kind == "":
		r.fault = "kind is empty"
	case len(kind) > maxKind:
		r.fault = "kind is longer than " + strconv.Itoa(maxKind) + " characters"
	case !isKind(kind):
		r.fault = "kind has a character outside a-z, 0-9 and _"
	case id == "":
		r.fault = "id is empty"
	}
	return r
}

// RefFromString takes a reference that was made elsewhere, exactly as it is.
// It is checked against the limits of the identity it becomes when it is used.
// Nothing keeps it apart from the strings NewRef makes.
func RefFromString(s string) Ref {
	r := Ref{raw: s}
	if strings.TrimSpace(s) == "" {
		r.fault = "reference is empty or blank"
	}
	return r
}

// Version names an edit of the record: NewRef("note", "0001").Version(2) is
// "note-0001-v2". n is at least 1; a second call replaces the first. This is
// the way to name an edited record, because the service skips another text
// under a reference it knows.
func (r Ref) Version(n int) Ref {
	switch {
	case r.raw != "":
		return r.blame("a reference from a string takes no version")
	case n < 1:
		return r.blame("version " + strconv.Itoa(n) + " is below 1")
	}
	r.version = n
	return r
}

// ForContent names the record together with this text, by 24 hex digits of its
// SHA-256. A text that is edited and then edited back (A, B, A) gives the first
// reference again, and the service skips that third write: use Version where
// that can happen.
func (r Ref) ForContent(text string) Ref {
	if r.raw != "" {
		return r.blame("a reference from a string takes no content")
	}
	r.content = textHash(text)[:contentDigits]
	return r
}

// Err is what is wrong with the Ref, as an ErrInvalidInput, or nil.
func (r Ref) Err() error {
	if r.fault == "" {
		return nil
	}
	return invalid("NewRef", "ref", r.fault)
}

// IsZero tells whether the Ref names nothing at all.
func (r Ref) IsZero() bool { return r == Ref{} }

// String is the reference as it goes over the wire, or "" when Err is not nil.
func (r Ref) String() string {
	if r.fault != "" || r.IsZero() {
		return ""
	}
	if r.raw != "" {
		return r.raw
	}
	s := r.kind + "-" + encodeID(r.kind, r.id)
	if r.version > 0 {
		s += "-v" + strconv.Itoa(r.version)
	}
	if r.content != "" {
		s += "-h" + r.content
	}
	return s
}

func (r Ref) blame(fault string) Ref {
	if r.fault == "" {
		r.fault = fault
	}
	return r
}

// clientRef is the Ref as a client_ref; "" for the zero Ref.
func (r Ref) clientRef(op string) (string, error) {
	if r.fault != "" {
		return "", invalid(op, "Ref", r.fault)
	}
	s := r.String()
	if !utf8.ValidString(s) {
		return "", invalid(op, "Ref", "client_ref is not valid UTF-8")
	}
	if n := utf8.RuneCountInString(s); n > MaxClientRef {
		return "", invalid(op, "Ref", "client_ref has "+strconv.Itoa(n)+" characters, the limit is 128")
	}
	return s, nil
}

// idempotencyKey is the Ref as an Idempotency-Key, which must be there.
func (r Ref) idempotencyKey(op string) (string, error) {
	if r.fault != "" {
		return "", invalid(op, "Key", r.fault)
	}
	s := r.String()
	if s == "" {
		return "", invalid(op, "Key", "Idempotency-Key is required: a write without one cannot be sent again safely")
	}
	if len(s) > MaxIdempotencyKey {
		return "", invalid(op, "Key", "Idempotency-Key has "+strconv.Itoa(len(s))+" characters, the limit is 200")
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return "", invalid(op, "Key", "Idempotency-Key has a character outside visible ASCII (limit: 1 to 200 of them)")
		}
	}
	return s, nil
}

// encodeID writes an id in one of three forms that no two ids share:
//
//	plain    letters, digits, ". _ : @ -"; no ending that reads like a suffix
//	~escaped every byte outside letters, digits, "." and "_" as ~hh
//	=digest  40 hex digits of SHA-256, when the other two are too long
//
// Plain never holds "~" or "=", so the first byte tells the form. Frozen: see
// the golden vectors beside the tests.
func encodeID(kind, id string) string {
	room := maxRefBase - len(kind) - 1
	if isPlain(id) && len(id) <= room {
		return id
	}
	if len(id) <= room {
		if s := "~" + escape(id); len(s) <= room {
			return s
		}
	}
	sum := sha256.Sum256([]byte(id))
	return "=" + hex.EncodeToString(sum[:])[:digestDigits]
}

func isPlain(id string) bool {
	for i := range len(id) {
		if !isWord(id[i]) && !strings.ContainsRune(":@-", rune(id[i])) {
			return false
		}
	}
	i := strings.LastIndexByte(id, '-')
	if i < 0 || i+2 > len(id) {
		return true
	}
	// "-v2" and "-h<hex>" are what Version and ForContent append.
	tail := id[i+2:]
	switch id[i+1] {
	case 'v':
		return tail == "" || strings.Trim(tail, "0123456789") != ""
	case 'h':
		return len(tail) != contentDigits || strings.Trim(tail, "0123456789abcdef") != ""
	}
	return true
}

func escape(id string) string {
	var b strings.Builder
	for i := range len(id) {
		if c := id[i]; isWord(c) {
			b.WriteByte(c)
		} else {
			b.WriteByte('~')
			b.WriteString(hex.EncodeToString([]byte{c}))
		}
	}
	return b.String()
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_'
}

func isKind(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return s != ""
}

// textHash is what Add sends in the metadata, and what ForContent shortens.
func textHash(text string) string {
	return string(appendTextHash(nil, text))
}

// appendTextHash is textHash behind b. A text of an ordinary size is not copied
// to the heap for it.
func appendTextHash(b []byte, text string) []byte {
	var room [1024]byte
	sum := sha256.Sum256(append(room[:0], text...))
	return hex.AppendEncode(b, sum[:])
}
