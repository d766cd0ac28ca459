package extract

import (
	"iter"
	"slices"
	"strings"
	"unicode"
)

// words splits text into lower-case words: runs of letters and digits, with
// apostrophes inside a word kept ("don't").
func words(text string) []string { return strings.FieldsFunc(plain(text), between) }

// wordsOf is words one by one, for who needs the first of them.
func wordsOf(text string) iter.Seq[string] { return strings.FieldsFuncSeq(plain(text), between) }

func plain(text string) string {
	if strings.Contains(text, "’") {
		text = strings.ReplaceAll(text, "’", "'")
	}
	return strings.ToLower(text)
}

func between(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && r != '\''
}

// carries says that a word carries meaning: it is no stop word and no filler.
func carries(w string) bool { return !isStop(w) && !isFiller(w) && stem(w) != "" }

// stem cuts the endings that do not change what an English word is about. It
// is deliberately small: it only has to be the same on both sides of a
// comparison.
func stem(w string) string {
	w = strings.TrimSuffix(strings.Trim(w, "'"), "'s")
	if len(w) <= 3 {
		return w
	}
	switch {
	case strings.HasSuffix(w, "ies") && len(w) > 4:
		return w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "shes"), strings.HasSuffix(w, "ches"), strings.HasSuffix(w, "xes"):
		return w[:len(w)-2]
	case strings.HasSuffix(w, "ss"), strings.HasSuffix(w, "us"), strings.HasSuffix(w, "is"):
		return w
	case strings.HasSuffix(w, "s"):
		return w[:len(w)-1]
	}
	return w
}

// meaning is the ordered set of stems that carry what a text says: stop words
// and filler are gone, repeats count once.
func meaning(text string) []string {
	var out []string
	var seen map[string]struct{} // once there are many
	for _, w := range words(text) {
		if !carries(w) {
			continue
		}
		s := stem(w)
		if seen == nil && len(out) < 16 {
			if !slices.Contains(out, s) {
				out = append(out, s)
			}
			continue
		}
		if seen == nil {
			seen = map[string]struct{}{}
			for _, o := range out {
				seen[o] = struct{}{}
			}
		}
		if _, dup := seen[s]; !dup {
			seen[s] = struct{}{}
			out = append(out, s)
		}
	}
	return out
}

func isStop(w string) bool {
	switch w {
	case "a", "an", "the", "of", "to", "in", "on", "at", "for", "and", "or", "but", "so", "with", "by", "from", "as",
		"i", "i'm", "i've", "i'll", "i'd", "me", "my", "mine", "myself", "we", "we're", "we've", "us", "our", "ours",
		"you", "your", "it", "it's", "its", "this", "that", "that's", "these", "those", "there", "here",
		"am", "is", "are", "was", "were", "be", "been", "being", "do", "does", "did", "have", "has", "had",
		"will", "would", "can", "could", "should", "just", "also", "very", "really", "please", "now":
		return true
	}
	return false
}

func isFiller(w string) bool {
	switch w {
	case "hi", "hello", "hey", "yo", "bye", "goodbye", "cheers", "ok", "okay", "k", "yes", "yeah", "yep", "no", "nope", "sure",
		"thanks", "thank", "thx", "ty", "welcome", "great", "cool", "nice", "good", "fine", "perfect", "awesome", "right",
		"lol", "haha", "hmm", "hm", "uh", "um", "well", "oh", "morning", "afternoon", "evening", "night", "day",
		"again", "all", "today", "else", "nothing", "everything", "got", "alright", "much", "lot", "later", "see", "soon":
		return true
	}
	return false
}
