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
	// A text that is quoted in part is found by this much of its beginning.
	scrubPrefix = 24
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

// mask replaces every occurrence of secret in s, also one that stops early.
func mask(s, secret string) string {
	head := secret[:min(len(secret), scrubPrefix)]
	if head == "" || !strings.Contains(s, head) {
		return s
	}
	var b strings.Builder
	for {
		i := strings.Index(s, head)
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		b.WriteString(scrubbed)
		n := 0
		for n < len(secret) && i+n < len(s) && s[i+n] == secret[n] {
			n++
		}
		s = s[i+n:]
	}
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
