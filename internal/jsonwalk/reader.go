// Package jsonwalk goes through a JSON document once, without reflection and
// without making anything of it that nobody asks for. It is for the documents
// that are read with every call or every step of a task; it takes what
// encoding/json takes, and reads it the same, up to maxDepth.
package jsonwalk

import (
	"bytes"
	"errors"
)

// maxDepth is how deep a value may nest.
const maxDepth = 100

// errSyntax says nothing of the document: it may be somebody's memory.
var errSyntax = errors.New("it is not JSON of the form that is read here")

// Reader reads one document from its beginning. After the first thing that is
// not what was asked for it stands at the end and gives nothing any more.
type Reader struct {
	doc []byte
	at  int
	err error
}

// Of reads doc, which nobody may change before what was read is no longer used.
func Of(doc []byte) Reader { return Reader{doc: doc} }

// End is nil where all was read and nothing stands behind it.
func (r *Reader) End() error {
	if r.space(); r.at != len(r.doc) {
		r.Fail()
	}
	return r.err
}

// Fail stops the reader: a value is not what it should be.
func (r *Reader) Fail() {
	r.err = errSyntax
	r.at = len(r.doc)
}

// Peek is the first byte of the next token; 0 at the end.
func (r *Reader) Peek() byte {
	if r.space(); r.at < len(r.doc) {
		return r.doc[r.at]
	}
	return 0
}

func (r *Reader) space() {
	for r.at < len(r.doc) {
		switch r.doc[r.at] {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return
		}
	}
}

func (r *Reader) take(c byte) bool {
	if r.at < len(r.doc) && r.doc[r.at] == c { // most documents have no spaces
		r.at++
		return true
	}
	return r.seek(c)
}

func (r *Reader) seek(c byte) bool {
	if r.Peek() != c || r.at >= len(r.doc) {
		return false
	}
	r.at++
	return true
}

func (r *Reader) expect(c byte) {
	if !r.take(c) {
		r.Fail()
	}
}

// Null steps over a null, and says whether there was one.
func (r *Reader) Null() bool { return r.Peek() == 'n' && r.word("null") }

func (r *Reader) word(s string) bool {
	if !bytes.HasPrefix(r.doc[r.at:], []byte(s)) {
		return false
	}
	r.at += len(s)
	return true
}

// Bool reads true or false.
func (r *Reader) Bool() bool {
	switch r.Peek() {
	case 't':
		if r.word("true") {
			return true
		}
	case 'f':
		if r.word("false") {
			return false
		}
	}
	r.Fail()
	return false
}

// Object calls member with each name; member has to read the value.
func (r *Reader) Object(member func(name []byte)) {
	r.list('{', '}', func() {
		name := r.Text()
		r.expect(':')
		if r.err == nil {
			member(name)
		}
	})
}

// Array calls element, which has to read it, for each.
func (r *Reader) Array(element func()) { r.list('[', ']', element) }

func (r *Reader) list(open, end byte, one func()) {
	r.expect(open)
	if r.err != nil || r.take(end) {
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

// Number is a number as it is written.
func (r *Reader) Number() []byte {
	r.space()
	n := numberEnd(r.doc[r.at:])
	if n == 0 {
		r.Fail()
		return nil
	}
	r.at += n
	return r.doc[r.at-n : r.at]
}

// Value is a whole value as it is written.
func (r *Reader) Value() []byte {
	r.space()
	from := r.at
	r.skip(0)
	if r.err != nil {
		return nil
	}
	return r.doc[from:r.at:r.at]
}

// Fields calls each with the members of the object doc: names as they read,
// values as they are written. It is false where doc is no object, or each is.
func Fields(doc []byte, each func(name, value []byte) bool) bool {
	r := Of(doc)
	r.Object(func(name []byte) {
		if value := r.Value(); r.err == nil && !each(name, value) {
			r.Fail()
		}
	})
	return r.End() == nil
}
