package ingest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// MaxLine is the longest line that is read; no service takes one near it.
const MaxLine = 1 << 20

// item is one record of the file, or what is wrong at a place of it.
type item struct {
	line int    // of its beginning, from 1
	data []byte // the record as JSON
	note string // something harmless that was mended
	err  error  // why there is no record; reading goes on behind it
}

// errLong is a line that is too long to be a record.
var errLong = fmt.Errorf("the line is longer than %d bytes", MaxLine)

var bom = []byte("\xef\xbb\xbf")

// lines reads a file line by line, and never keeps more than MaxLine of it.
type lines struct {
	in   *bufio.Reader
	n    int
	crlf bool // one was seen and told of
	read int64
}

func newLines(r io.Reader) *lines { return &lines{in: bufio.NewReaderSize(r, 64<<10)} }

// next gives a line without its end. io.EOF ends the file; a line that is too
// long is read over and is an error of its own.
func (l *lines) next() (text []byte, note string, err error) {
	l.n++
	var long bool
	for {
		part, err := l.in.ReadSlice('\n')
		l.read += int64(len(part))
		if long = long || len(text)+len(part) > MaxLine; !long {
			text = append(text, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, "", err
		}
		if err != nil && len(text) == 0 && !long {
			return nil, "", io.EOF
		}
		break
	}
	if long {
		return nil, "", errLong
	}
	if rest, had := bytes.CutPrefix(text, bom); had {
		text, note = rest, "a byte order mark was left out"
	}
	text = bytes.TrimSuffix(text, []byte("\n"))
	if rest, had := bytes.CutSuffix(text, []byte("\r")); had {
		text = rest
		if !l.crlf {
			l.crlf = true
			note = "lines end in CR LF, which is left out here and below"
		}
	}
	return text, note, nil
}

// source gives the records of a file one after the other, and io.EOF at its
// end. Any other error ends it early.
type source interface {
	next() (item, error)
	offset() int64 // bytes read so far
}

type jsonl struct{ lines *lines }

func (s *jsonl) offset() int64 { return s.lines.read }

func (s *jsonl) next() (item, error) {
	for {
		text, note, err := s.lines.next()
		it := item{line: s.lines.n, data: text, note: note}
		switch {
		case errors.Is(err, errLong):
			it.err = err
		case err != nil:
			return item{}, err
		case len(bytes.TrimSpace(text)) == 0 && note == "":
			continue
		case len(bytes.TrimSpace(text)) == 0:
			it.data = nil
		case !utf8.Valid(text):
			it.err = errors.New("the line is not valid UTF-8")
		}
		return it, nil
	}
}
