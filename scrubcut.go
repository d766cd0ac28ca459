package memwrite

import "strings"

// scrubCut is how many bytes of a text beside an ellipsis are a quote of it.
// Validators shorten what they quote to its beginning and its end, pydantic to 24
// and 23 bytes; a sentence that ends in dots by itself seldom has so many bytes
// in common with a text.
const scrubCut = 12

// addCut marks what stands before and behind an ellipsis and in secret, too.
func (m *marks) addCut(s, secret string) {
	type side struct{ at, step int } // at of s begins the part; it goes on to the left or to the right
	parts := map[string][]side{}
	add := func(part string, p side) {
		if len(parts[part]) < 8 { // an answer that repeats itself costs no more than that
			parts[part] = append(parts[part], p)
		}
	}
	for _, dots := range []string{"...", "…"} {
		for i := 0; ; {
			n := strings.Index(s[i:], dots)
			if n < 0 {
				break
			}
			if i += n; i >= scrubCut {
				add(s[i-scrubCut:i], side{i - scrubCut, -1})
			}
			if i += len(dots); i+scrubCut <= len(s) {
				add(s[i:i+scrubCut], side{i, 1})
			}
		}
	}
	if len(parts) == 0 {
		return
	}
	for i := 0; i+scrubCut <= len(secret); i++ {
		for _, p := range parts[secret[i:i+scrubCut]] {
			from, to := p.at, p.at+scrubCut
			// What is longer than scrubPart is found without its ellipsis.
			for j := i - 1; p.step < 0 && to-from < scrubPart && j >= 0 && from > 0 && s[from-1] == secret[j]; j-- {
				from--
			}
			for j := i + scrubCut; p.step > 0 && to-from < scrubPart && j < len(secret) && to < len(s) && s[to] == secret[j]; j++ {
				to++
			}
			m.mark(len(s), from, to)
		}
	}
}

// mark marks a part of a string of so many bytes.
func (m *marks) mark(size, from, to int) {
	if *m == nil {
		*m = make(marks, size)
	}
	for ; from < to; from++ {
		(*m)[from] = true
	}
}
