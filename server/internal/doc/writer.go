package doc

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"
)

// writer appends a JSON object's members. A document is written for each step of
// each task, which is why encoding/json's reflection is left out here; what it
// reads and writes of the same document is the same.
type writer struct {
	b   []byte
	err error
}

// usual is room for a usual document, in bytes.
const usual = 1024

// newWriter begins an object with room for a usual document.
func newWriter() *writer { return &writer{b: append(make([]byte, 0, usual), '{')} }

func (w *writer) end() ([]byte, error) {
	w.b = append(w.b, '}')
	return w.b, w.err
}

// name begins a member. The names are this package's and need no escape.
func (w *writer) name(n string) {
	w.comma()
	w.b = append(w.b, '"')
	w.b = append(w.b, n...)
	w.b = append(w.b, '"', ':')
}

func (w *writer) comma() {
	if c := w.b[len(w.b)-1]; c != '{' && c != '[' {
		w.b = append(w.b, ',')
	}
}

// object is a member that is an object itself.
func (w *writer) object(n string, members func()) {
	w.name(n)
	w.element(members)
}

func (w *writer) element(members func()) {
	w.b = append(w.b, '{')
	members()
	w.b = append(w.b, '}')
}

func (w *writer) must(n, s string) {
	w.name(n)
	w.b = appendString(w.b, s)
}

// text, number, yes and instant leave out what is zero.

func (w *writer) text(n, s string) {
	if s != "" {
		w.must(n, s)
	}
}

func (w *writer) mustNumber(n string, i int64) {
	w.name(n)
	w.b = strconv.AppendInt(w.b, i, 10)
}

func (w *writer) number(n string, i int64) {
	if i != 0 {
		w.mustNumber(n, i)
	}
}

func (w *writer) yes(n string, b bool) {
	if b {
		w.name(n)
		w.b = append(w.b, "true"...)
	}
}

func (w *writer) bytes(n string, b []byte) {
	w.name(n)
	w.b = append(w.b, '"')
	w.b = base64.StdEncoding.AppendEncode(w.b, b)
	w.b = append(w.b, '"')
}

func (w *writer) instant(n string, t time.Time) {
	if !t.IsZero() {
		w.mustInstant(n, t)
	}
}

func (w *writer) mustInstant(n string, t time.Time) {
	w.name(n)
	w.b = append(w.b, '"')
	b, err := instant(t).AppendText(w.b)
	if err != nil { // a year beyond 9999
		w.err = err
		return
	}
	w.b = append(b, '"')
}

// any is for what is rare.
func (w *writer) any(n string, v any) {
	w.name(n)
	b, err := json.Marshal(v)
	if err != nil {
		w.err = err
		return
	}
	w.b = append(w.b, b...)
}

// array keeps nil, which is left out, apart from empty.
func array[T any](w *writer, n string, vs []T, one func(*T)) {
	if vs == nil {
		return
	}
	w.name(n)
	w.b = append(w.b, '[')
	for i := range vs {
		w.comma()
		one(&vs[i])
	}
	w.b = append(w.b, ']')
}

func (w *writer) texts(n string, vs []string) {
	array(w, n, vs, func(s *string) { w.b = appendString(w.b, *s) })
}

const hexDigits = "0123456789abcdef"

// appendString writes what is no UTF-8 as encoding/json does, as U+FFFD.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(append(b, s[from:i]...), `\ufffd`...)
				from = i + 1
			}
			i += n
			continue
		}
		b = append(b, s[from:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		from = i
	}
	return append(append(b, s[from:]...), '"')
}
