package extract

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// sentences cuts a text at line ends and after closing punctuation that is
// followed by space or the end ("v1.2" and "a.m." inside a word stay whole).
// The punctuation stays with its sentence.
func sentences(text string) []string {
	var out []string
	start := 0
	add := func(end int) {
		if s := strings.TrimSpace(text[start:end]); s != "" {
			out = append(out, s)
		}
		start = end
	}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		next := i + n
		switch r {
		case '\n', '\r':
			add(next)
		case '。', '！', '？':
			add(next)
		case '.', '!', '?':
			after, _ := utf8.DecodeRuneInString(text[next:])
			if next == len(text) || unicode.IsSpace(after) {
				add(next)
			}
		}
		i = next
	}
	add(len(text))
	return out
}
