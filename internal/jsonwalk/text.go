package jsonwalk

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Text reads a string. One without escapes is a part of the document.
func (r *Reader) Text() []byte {
	r.space()
	from := r.at
	if ascii := r.quoted(); ascii && r.err == nil {
		return r.doc[from+1 : r.at-1]
	}
	s, ok := Unquote(r.doc[from:r.at])
	if !ok {
		r.Fail()
	}
	return s
}

// quoted steps over a string, and says whether it is ASCII without escapes.
func (r *Reader) quoted() (ascii bool) {
	r.expect('"')
	if n := bytes.IndexByte(r.doc[r.at:], '"'); n >= 0 && simple(r.doc[r.at:r.at+n]) {
		r.at += n + 1
		return true
	}
	ascii = true
	for i := r.at; i < len(r.doc); i++ {
		switch c := r.doc[i]; {
		case c == '"':
			r.at = i + 1
			return ascii
		case c == '\\':
			n := escapeEnd(r.doc[i:])
			if n == 0 {
				r.Fail()
				return false
			}
			i += n - 1
			ascii = false
		case c < ' ':
			r.Fail()
			return false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	r.Fail()
	return false
}

// simple says that s is ASCII without escapes and control characters. It looks at
// eight bytes at a time: most of a document is strings.
func simple(s []byte) bool {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	for ; len(s) >= 8; s = s[8:] {
		x := binary.LittleEndian.Uint64(s)
		y := x ^ ones*'\\'
		if (x|(x-ones*' ')&^x|(y-ones)&^y)&high != 0 {
			return false
		}
	}
	for _, c := range s {
		if c < ' ' || c >= utf8.RuneSelf || c == '\\' {
			return false
		}
	}
	return true
}

// escapeEnd is where the escape ends that b begins with; 0 where it is none.
func escapeEnd(b []byte) int {
	switch {
	case len(b) < 2:
	case b[1] != 'u':
		if strings.IndexByte(`"\/bfnrt`, b[1]) >= 0 {
			return 2
		}
	case len(b) >= 6:
		for _, c := range b[2:6] {
			if strings.IndexByte("0123456789abcdefABCDEF", c) < 0 {
				return 0
			}
		}
		return 6
	}
	return 0
}

// Unquote is what a string says, given as it is written, with its quotes. It is
// false for what is no string; without escapes it is a part of what was given.
func Unquote(written []byte) ([]byte, bool) {
	if len(written) < 2 || written[0] != '"' {
		return nil, false
	}
	if inner := written[1 : len(written)-1]; bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return inner, true // as most are
	}
	var s string
	err := json.Unmarshal(written, &s)
	return []byte(s), err == nil
}
