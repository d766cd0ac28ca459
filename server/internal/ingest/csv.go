package ingest

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// csvFile reads a CSV file whose first row names the fields. A record may span
// lines inside quotes, up to MaxLine; a quote that is never closed costs its own
// line and no other.
type csvFile struct {
	lines  *lines
	back   []rawLine // read ahead for a quote that was not closed
	header []string
}

type rawLine struct {
	n    int
	text []byte
	note string
	err  error
}

func (s *csvFile) offset() int64 { return s.lines.read }

// fields of the record's JSON that are not strings.
var kinds = map[string]func(string) (any, error){
	"version":     func(v string) (any, error) { return strconv.Atoi(v) },
	"ttl_minutes": func(v string) (any, error) { return strconv.Atoi(v) },
	"importance":  func(v string) (any, error) { return strconv.ParseFloat(v, 64) },
	"deduplicate": func(v string) (any, error) { return strconv.ParseBool(v) },
	"tags": func(v string) (any, error) {
		var tags []string
		for t := range strings.SplitSeq(v, ";") {
			if t = strings.TrimSpace(t); t != "" {
				tags = append(tags, t)
			}
		}
		return tags, nil
	},
	"metadata": jsonCell, "messages": jsonCell,
}

func jsonCell(v string) (any, error) {
	if !json.Valid([]byte(v)) {
		return nil, errors.New("is not JSON")
	}
	return json.RawMessage(v), nil
}

func (s *csvFile) next() (item, error) {
	for {
		line, note, row, err := s.row()
		switch {
		case errors.Is(err, io.EOF):
			return item{}, err
		case line == 0:
			return item{}, err
		case err != nil && s.header == nil:
			return item{}, fmt.Errorf("line %d has to name the fields: %w", line, err)
		case err != nil:
			return item{line: line, note: note, err: err}, nil
		case s.header == nil:
			if err := s.take(row); err != nil {
				return item{}, fmt.Errorf("line %d has to name the fields: %w", line, err)
			}
			if note != "" {
				return item{line: line, note: note}, nil
			}
		default:
			data, err := s.record(row)
			return item{line: line, note: note, data: data, err: err}, nil
		}
	}
}

func (s *csvFile) take(row []string) error {
	for i, name := range row {
		name = strings.ToLower(strings.TrimSpace(name))
		if name == "" {
			return fmt.Errorf("column %d has no name", i+1)
		}
		if slices.Contains(s.header, name) {
			return fmt.Errorf("column %q stands there twice", name)
		}
		s.header = append(s.header, name)
	}
	return nil
}

// record is a row as the JSON of a record. An empty cell is an absent field.
func (s *csvFile) record(row []string) ([]byte, error) {
	if len(row) != len(s.header) {
		return nil, fmt.Errorf("the row has %d fields, the first line names %d", len(row), len(s.header))
	}
	fields := make(map[string]any, len(row))
	for i, v := range row {
		name := s.header[i]
		if v == "" {
			continue
		}
		fields[name] = v
		if read := kinds[name]; read != nil {
			val, err := read(strings.TrimSpace(v))
			if err != nil {
				return nil, fmt.Errorf("field %s cannot be read", name)
			}
			fields[name] = val
		}
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(fields); err != nil {
		return nil, errors.New("the row cannot be written as JSON")
	}
	return bytes.TrimSpace(buf.Bytes()), nil
}

// row reads one row, which may span lines. line is 0 when the file cannot be
// read any further.
func (s *csvFile) row() (line int, note string, row []string, err error) {
	var text []byte
	var taken []rawLine
	for {
		l, err := s.line()
		if err != nil && len(taken) == 0 {
			return 0, "", nil, err
		}
		if err == nil {
			taken = append(taken, l)
			text = append(append(text, l.text...), '\n')
		}
		first := taken[0]
		switch {
		case err != nil || l.err != nil && len(taken) > 1 || len(text) > MaxLine:
			s.back = append(taken[1:], s.back...)
			return first.n, first.note, nil, errors.New("a quote is opened and not closed")
		case l.err != nil:
			return l.n, l.note, nil, l.err
		case len(taken) == 1 && len(bytes.TrimSpace(text)) == 0:
			taken, text = nil, nil
			if first.note != "" {
				return first.n, first.note, nil, errors.New("the line is empty")
			}
			continue
		case bytes.Count(text, []byte{'"'})%2 == 1:
			continue // the row goes on
		case !utf8.Valid(text):
			return first.n, first.note, nil, errors.New("the line is not valid UTF-8")
		}
		r := csv.NewReader(bytes.NewReader(text))
		r.FieldsPerRecord = -1
		row, err := r.Read()
		if err != nil {
			var p *csv.ParseError
			if errors.As(err, &p) {
				err = p.Err
			}
			s.back = append(taken[1:], s.back...)
			return first.n, first.note, nil, fmt.Errorf("the row is not CSV: %w", err)
		}
		return first.n, first.note, row, nil
	}
}

func (s *csvFile) line() (rawLine, error) {
	if len(s.back) > 0 {
		l := s.back[0]
		s.back = s.back[1:]
		return l, nil
	}
	text, note, err := s.lines.next()
	if err != nil && !errors.Is(err, errLong) {
		return rawLine{}, err
	}
	return rawLine{n: s.lines.n, text: text, note: note, err: err}, nil
}
