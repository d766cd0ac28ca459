package memwrite

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// addBody is the body of an Add, byte for byte what encoding/json makes of the
// contract's type without the escapes for HTML. It is written by hand because
// it is made most: through a struct it costs as much as the try loop.
func addBody(op, ref string, req AddRequest) ([]byte, error) {
	o := object{make([]byte, 0, 320+len(req.Text)+len(req.Metadata)+2*len(ref)+len(req.Source)+len(req.EventType)+len(req.SessionID))}
	o.text("client_ref", ref)
	if req.Deduplicate != nil {
		o.raw("deduplicate", strconv.FormatBool(*req.Deduplicate))
	}
	o.text("event_type", req.EventType)
	if req.Importance != nil {
		n, err := json.Marshal(*req.Importance)
		if err != nil {
			return nil, invalid(op, "Importance", "cannot be written as JSON")
		}
		o.raw("importance", string(n))
	}
	if err := o.metadata(op, req.Metadata, req.Text, ref); err != nil {
		return nil, err
	}
	o.text("session_id", req.SessionID)
	o.text("source", req.Source)
	if len(req.Tags) > 0 {
		o.name("tags")
		for i, tag := range req.Tags {
			o.b = append(o.b, "[,"[min(i, 1)])
			o.b = appendString(o.b, tag)
		}
		o.b = append(o.b, ']')
	}
	o.text("text", req.Text)
	if req.TTLMinutes != nil {
		o.raw("ttl_minutes", itoa(*req.TTLMinutes))
	}
	return append(o.b, '}'), nil
}

// object is a JSON object that is being written.
type object struct{ b []byte }

func (o *object) name(name string) {
	if len(o.b) == 0 {
		o.b = append(o.b, '{')
	} else if o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(append(append(o.b, '"'), name...), '"', ':')
}

// text writes a field, or none for an empty string: unset is absent.
func (o *object) text(name, v string) {
	if v != "" {
		o.name(name)
		o.b = appendString(o.b, v)
	}
}

func (o *object) raw(name, v string) {
	o.name(name)
	o.b = append(o.b, v...)
}

// metadata is the caller's with the text's hash and the reference it belongs
// to. The rest of it keeps its bytes: a number with 20 digits is still that
// number.
func (o *object) metadata(op string, meta json.RawMessage, text, ref string) error {
	o.name("metadata")
	o.b = append(o.b, '{')
	if m := bytes.TrimSpace(meta); len(m) > 0 {
		var fields map[string]json.RawMessage
		if json.Unmarshal(m, &fields) != nil {
			return invalid(op, "Metadata", "is not a JSON object")
		}
		for _, name := range []string{HashField, RefField} {
			if _, taken := fields[name]; taken {
				return invalid(op, "Metadata", "holds "+name+", which Add sets itself")
			}
		}
		var whole bytes.Buffer
		if json.Compact(&whole, m) != nil {
			return invalid(op, "Metadata", "is not a JSON object")
		}
		o.b = append(o.b, whole.Bytes()[1:whole.Len()-1]...)
	}
	o.name(HashField)
	o.b = append(appendTextHash(append(o.b, '"'), text), '"')
	o.text(RefField, ref)
	o.b = append(o.b, '}')
	return nil
}

// appendString writes s as a JSON string, as encoding/json does without the
// escapes for HTML: invalid UTF-8 becomes U+FFFD, and the two line separators
// of Unicode, which JavaScript once took for ends of lines, are escaped.
func appendString(b []byte, s string) []byte {
	begin, ascii := len(b), true
	b = append(b, '"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= utf8.RuneSelf {
			ascii = false
		}
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		case '\b':
			b = append(b, '\\', 'b')
		case '\f':
			b = append(b, '\\', 'f')
		default:
			const hex = "0123456789abcdef"
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	if !ascii && (!utf8.ValidString(s) || strings.Contains(s, "\u2028") || strings.Contains(s, "\u2029")) {
		if quoted, err := encodeBody("", s); err == nil {
			return append(b[:begin], quoted...)
		}
	}
	return append(append(b, s[from:]...), '"')
}
