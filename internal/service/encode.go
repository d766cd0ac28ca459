package service

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// answer writes one JSON document.
func answer(w http.ResponseWriter, status int, body any) {
	answerWith(w, status, func(b []byte) ([]byte, error) { return appendAny(b, body) })
}

// answerMemory answers with a record on /memory/*.
func answerMemory(w http.ResponseWriter, status int, r *Record) {
	answerWith(w, status, func(b []byte) ([]byte, error) { return appendMemory(b, r) })
}

// scratch is where answers are made. Whoever they are written to copies them.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

// maxScratch bounds what is kept for the next answer.
const maxScratch = 64 << 10

func answerWith(w http.ResponseWriter, status int, write func(b []byte) ([]byte, error)) {
	room := scratch.Get().(*[]byte)
	defer scratch.Put(room)
	out, err := write((*room)[:0])
	if err != nil { // our own types: a metadata document that is no JSON
		status, out = http.StatusInternalServerError, []byte(`{"code":"MEMORY_ENGINE_ERROR","message":"the answer cannot be written","request_id":""}`)
	}
	if out = append(out, '\n'); cap(out) <= maxScratch {
		*room = out
	}
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(out))}
	w.WriteHeader(status)
	_, _ = w.Write(out)
}

// appendMemory writes a memoryBody as encoding/json does, byte for byte. Every
// write on /memory/add is answered with one, too often for reflection.
func appendMemory(b []byte, r *Record) ([]byte, error) {
	text := func(name, s string) { b = appendText(append(b, name...), s) }
	optional := func(name, s string) {
		if s == "" {
			b = append(append(b, name...), "null"...)
			return
		}
		text(name, s)
	}
	at := func(name string, t time.Time) {
		b = append(appendOffset(append(append(b, name...), '"'), t.UTC()), '"')
	}
	b = strconv.AppendInt(append(b, `{"id":`...), r.Number, 10)
	b = strconv.AppendInt(append(b, `,"user_id":`...), r.UserNumber, 10)
	text(`,"text":`, r.Text)
	at(`,"summary":null,"created_at":`, r.CreatedAt)
	at(`,"updated_at":`, r.UpdatedAt)
	b, err := appendDocument(append(b, `,"metadata":`...), r.Metadata)
	if err != nil {
		return b, err
	}
	b = append(b, `,"tags":[`...)
	for i, tag := range r.Tags {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, tag)
	}
	optional(`],"source":`, r.Source)
	optional(`,"event_type":`, r.EventType)
	b = appendNumber(append(b, `,"tier":"hot","importance":`...), r.Importance)
	if b = append(b, `,"is_summary":false,"expires_at":`...); r.ExpiresAt.IsZero() {
		b = append(b, "null"...)
	} else {
		at("", r.ExpiresAt)
	}
	text(`,"key_points":[],"quality_score":null,"memory_type":`, r.Type)
	return append(b, '}'), nil
}

// appendText writes a string.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			b, _ = appendAny(b, s) // a string can always be written
			return b
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// appendOffset writes a time of UTC as offsetLayout says, a digit at a time.
func appendOffset(b []byte, t time.Time) []byte {
	year, month, day := t.Date()
	if year < 1000 || year > 9999 {
		return t.AppendFormat(b, offsetLayout)
	}
	hour, minute, second := t.Clock()
	b = strconv.AppendInt(b, int64(year), 10)
	for _, part := range [...]struct {
		before byte
		n      int
	}{{'-', int(month)}, {'-', day}, {'T', hour}, {':', minute}, {':', second}} {
		b = append(b, part.before, byte('0'+part.n/10), byte('0'+part.n%10))
	}
	b = append(b, '.')
	for n, unit := t.Nanosecond()/1000, 100_000; unit > 0; unit /= 10 {
		b = append(b, byte('0'+n/unit%10))
	}
	return append(b, "+00:00"...)
}

// appendNumber writes a number.
func appendNumber(b []byte, n float64) []byte {
	if size := math.Abs(n); n != 0 && (size < 1e-6 || size >= 1e21) { // which have an exponent
		b, _ = appendAny(b, n)
		return b
	}
	return strconv.AppendFloat(b, n, 'f', -1, 64)
}

// appendDocument writes metadata, or null.
func appendDocument(b []byte, raw json.RawMessage) ([]byte, error) {
	if len(raw) == 0 {
		return append(b, "null"...), nil
	}
	return appendAny(b, raw)
}

func appendAny(b []byte, v any) ([]byte, error) {
	out, err := json.Marshal(v)
	return append(b, out...), err
}
