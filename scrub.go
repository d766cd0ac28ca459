package memwrite

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
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
	for _, secret := range s {
		for _, form := range spellings(secret) {
			in = mask(in, form)
		}
	}
	return in
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

// mask replaces every occurrence of secret in s, and of each part of it that is
// long enough: a service may quote its beginning, its middle or its end.
func mask(s, secret string) string {
	n := min(len(secret), scrubPart)
	if n == 0 || len(s) < n {
		return s
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
		return s
	}
	var b strings.Builder
	kept := 0 // s before it is in b
	for i := 0; i+n <= len(s); {
		if !quoted[s[i:i+n]] {
			i++
			continue
		}
		end := i + n
		for end < len(s) && quoted[s[end+1-n:end+1]] {
			end++
		}
		b.WriteString(s[kept:i])
		b.WriteString(scrubbed)
		kept, i = end, end
	}
	b.WriteString(s[kept:])
	return b.String()
}

func hasPart(parts map[string]bool, part string) bool {
	_, ok := parts[part]
	return ok
}

// spellings are the ways one text can stand in a body: as it is, and as JSON
// with and without the escapes for HTML.
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
	return all
}
