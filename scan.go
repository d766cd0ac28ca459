package memwrite

import (
	"bytes"
	"unicode/utf8"
)

// scan walks over JSON that is known to be valid, without making anything of
// it. It is for the few documents that are read with every Add, where decoding
// by reflection costs a fifth of a call over loopback; what it does not
// understand at a glance is left to encoding/json. On bytes that are no JSON it
// ends early and never fails.
type scan struct {
	doc []byte
	at  int
}

// peek is the next byte that is no space; 0 at the end.
func (s *scan) peek() byte {
	for s.at < len(s.doc) {
		switch c := s.doc[s.at]; c {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return c
		}
	}
	return 0
}

// take steps over c, and says whether it was there.
func (s *scan) take(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.at++
	return true
}

// value is the next value as it is written.
func (s *scan) value() []byte {
	c := s.peek()
	begin, depth := s.at, 0
	for s.at < len(s.doc) {
		switch s.doc[s.at] {
		case '"':
			s.text()
		case '{', '[':
			depth++
			s.at++
		case '}', ']', ',', ' ', '\t', '\r', '\n':
			if depth == 0 { // behind a number or a word
				return s.doc[begin:s.at]
			}
			if b := s.doc[s.at]; b == '}' || b == ']' {
				depth--
			}
			s.at++
		default:
			s.at++
			continue // inside a number or a word
		}
		if depth == 0 && (c == '"' || c == '{' || c == '[') {
			break
		}
	}
	return s.doc[begin:s.at]
}

// text steps over a string.
func (s *scan) text() {
	for s.at++; s.at < len(s.doc); s.at++ {
		switch s.doc[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return
		}
	}
	s.at = len(s.doc) // it has no end
}

// fields calls each with the fields of the object doc, names without quotes.
// It is false where each is, or where doc is no object or has a name with an
// escape in it.
func fields(doc []byte, each func(name, value []byte) bool) bool {
	s := scan{doc: doc}
	if !s.take('{') {
		return false
	}
	for !s.take('}') {
		name, ok := plain(s.value())
		if !ok || !s.take(':') || !each(name, s.value()) {
			return false
		}
		if !s.take(',') && s.peek() != '}' {
			return false
		}
	}
	return true
}

// plain is what stands between the quotes of a string that holds no escape.
func plain(value []byte) ([]byte, bool) {
	if len(value) < 2 || value[0] != '"' {
		return nil, false
	}
	inner := value[1 : len(value)-1]
	return inner, bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner)
}
