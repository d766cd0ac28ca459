package memwrite

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/memwrite/memwrite-go/internal/transport"
)

// scrubber takes out of a service's words what must not reach a log: the key,
// and the text the call sent (validation errors like to quote their input).
type scrubber []string

const (
	scrubbed = "[removed]"
	// A text that is quoted in part is found by any so many bytes of it. Fewer
	// would take common words out of every message.
	scrubPart = 24
)

func (s scrubber) clean(in string) string {
	var found marks
	for _, secret := range s {
		for _, form := range spellings(secret) {
			found.add(in, form)
			found.addCut(in, form)
		}
	}
	return found.removed(in)
}

func (s scrubber) cleanJSON(in json.RawMessage) json.RawMessage {
	if len(in) == 0 {
		return nil
	}
	out := json.RawMessage(s.clean(string(in)))
	if !json.Valid(out) {
		return nil
	}
	return out
}

// marks are the bytes of a string that are to go. All spellings are looked for
// before any is taken out: what one of them finds in the middle of another would
// leave the rest of that one unrecognised.
type marks []bool

// add marks every occurrence of secret in s, and of each part of it that is long
// enough: a service may quote its beginning, its middle or its end.
func (m *marks) add(s, secret string) {
	n := min(len(secret), scrubPart)
	if n == 0 || len(s) < n {
		return
	}
	// The parts of s are looked for in the secret and not the other way round:
	// s is an answer's snippet, the secret may be a quarter of a megabyte.
	quoted := map[string]bool{}
	for i := 0; i+n <= len(s); i++ {
		quoted[s[i:i+n]] = false
	}
	found := false
	for i := 0; i+n <= len(secret); i++ {
		if part := secret[i : i+n]; hasPart(quoted, part) {
			quoted[part], found = true, true
		}
	}
	if !found {
		return
	}
	if *m == nil {
		*m = make(marks, len(s))
	}
	until := 0 // s is marked up to here
	for i := 0; i+n <= len(s); i++ {
		if quoted[s[i:i+n]] {
			for until = max(until, i); until < i+n; until++ {
				(*m)[until] = true
			}
		}
	}
}

// removed is s without what is marked.
func (m marks) removed(s string) string {
	if m == nil {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		switch {
		case !m[i]:
			b.WriteByte(s[i])
		case i == 0 || !m[i-1]:
			b.WriteString(scrubbed)
		}
	}
	return b.String()
}

func hasPart(parts map[string]bool, part string) bool {
	_, ok := parts[part]
	return ok
}

// spellings are the ways one text can stand in an answer: as it is, as JSON of
// this and other languages, in HTML, and in an address.
func spellings(secret string) []string {
	if len(secret) < 4 {
		return nil // shorter than any key, and found in every sentence
	}
	all := []string{secret}
	for _, html := range []bool{true, false} {
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(html)
		if enc.Encode(secret) == nil {
			q := strings.TrimSuffix(buf.String(), "\n")
			if q = q[1 : len(q)-1]; q != secret {
				all = append(all, q)
			}
		}
	}
	if q := strings.Trim(strconv.QuoteToASCII(secret), `"`); q != secret {
		all = append(all, q)
	}
	all = append(all, escapedASCII(secret, false, false), escapedASCII(secret, true, false), escapedASCII(secret, false, true),
		url.QueryEscape(secret), url.PathEscape(secret))
	for _, quotes := range [][2]string{{"&#34;", "&#39;"}, {"&quot;", "&#x27;"}, {"&quot;", "&#39;"}} {
		all = append(all, strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, quotes[0], "'", quotes[1]).Replace(secret))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// escapedASCII is JSON as the libraries of other languages write it: everything
// beyond ASCII in UTF-16, in lower or upper hex, and slashes escaped or not.
func escapedASCII(s string, upper, slash bool) string {
	digits := "0123456789abcdef"
	if upper {
		digits = "0123456789ABCDEF"
	}
	b := make([]byte, 0, len(s)+len(s)/2)
	for _, r := range s {
		switch {
		case r == '"' || r == '\\' || r == '/' && slash:
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, '\\', 'n')
		case r == '\r':
			b = append(b, '\\', 'r')
		case r == '\t':
			b = append(b, '\\', 't')
		case r >= ' ' && r < 0x7f:
			b = append(b, byte(r))
		default:
			for _, u := range utf16.AppendRune(nil, r) {
				b = append(b, '\\', 'u', digits[u>>12], digits[u>>8&15], digits[u>>4&15], digits[u&15])
			}
		}
	}
	return string(b)
}

// target is the place a redirect points to. A path may spell a text in percent
// signs, in more ways than one.
func (s scrubber) target(in string) string {
	if plain, err := url.PathUnescape(in); err == nil {
		if cleaned := s.clean(plain); cleaned != plain {
			return oneLine(cleaned)
		}
	}
	return s.clean(in)
}

// answer is a copy of a that repeats nothing, for the eyes of other calls.
func (s scrubber) answer(a *transport.Answer) *transport.Answer {
	clean := *a
	clean.Body = []byte(s.clean(string(a.Body)))
	clean.Header = http.Header{}
	for _, name := range []string{"Date", "Retry-After", "Retry-After-Ms", "X-Request-Id"} {
		for _, v := range a.Header[name] {
			clean.Header.Add(name, s.clean(v))
		}
	}
	return &clean
}
