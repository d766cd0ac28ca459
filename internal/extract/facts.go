package extract

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// MaxFacts is how many facts one input gives at most; what comes after is not
// looked at.
const MaxFacts = 64

// maxFactRunes bounds one fact: a "sentence" longer than this is cut.
const maxFactRunes = 1000

// Fact is one thing worth remembering: Text in the extractor's own words, never
// empty; Type fact, preference, decision, identity, event or goal; Key in the
// form subject/topic. Only the end user's own name is a fact that replaces an
// older one: of everything else there may be many.
type Fact = protocol.Fact

// Facts gives the facts of a text in the order they were said. Greetings,
// thanks and questions hold none, so a text of nothing else gives an empty
// result, which is a success.
//
//	"My team ships releases every Thursday." -> "Ships releases every Thursday"
func Facts(text string) []Fact {
	var out []Fact
	for _, s := range sentences(text) {
		if len(out) == MaxFacts {
			break
		}
		if f, ok := fact(s); ok {
			out = append(out, f)
		}
	}
	return out
}

// LowValue says that a conversation turn is not worth sending to extraction at
// all: it has no letters, is a single word, or is one or two words of filler.
func LowValue(text string) bool {
	if strings.IndexFunc(text, unicode.IsLetter) < 0 {
		return true
	}
	return lowValue(text, words(text))
}

// lowValue is LowValue of a text with letters, whose words are known.
func lowValue(text string, ws []string) bool {
	if len(ws) <= 1 {
		// Scripts that write no spaces between words have sentences that look
		// like one word here.
		return utf8.RuneCountInString(text) < 12 || isASCII(text)
	}
	if len(ws) > 2 {
		return false
	}
	for _, w := range ws {
		if !isFiller(w) && !isStop(w) {
			return false
		}
	}
	return true
}

// fact reads one sentence. The second result is false when it holds nothing.
func fact(sentence string) (Fact, bool) {
	s := strings.TrimSpace(sentence)
	if strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？") {
		return Fact{}, false
	}
	s = strings.TrimRightFunc(s, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(".!。！,;:", r) })
	said := words(s)
	if !slices.ContainsFunc(said, carries) || strings.IndexFunc(s, unicode.IsLetter) < 0 || lowValue(s, said) {
		return Fact{}, false
	}
	subject, rest := splitSubject(s)
	text := capitalise(cut(rest, maxFactRunes))
	kind := kindOf(said)
	return Fact{Text: text, Type: kind, Key: key(subject, text), Replaces: subject == "self" && kind == "identity" && strings.HasPrefix(text, "Name is ")}, true
}

// splitSubject takes the speaker off the front of a sentence, since a memory
// belongs to its end user and need not repeat who said it.
func splitSubject(s string) (subject, rest string) {
	lower := strings.ToLower(strings.ReplaceAll(s, "’", "'"))
	if len(lower) != len(s) { // a letter changed its length: keep the sentence whole
		return "self", s
	}
	for _, p := range subjects {
		if len(s) > len(p.prefix) && strings.HasPrefix(lower, p.prefix) {
			rest = s[len(p.prefix):]
			if strings.IndexFunc(rest, unicode.IsLetter) < 0 {
				continue
			}
			return p.subject, strings.TrimSpace(rest)
		}
	}
	return "self", s
}

// subjects is ordered: the longer prefix of two that match comes first.
var subjects = [...]struct{ prefix, subject string }{
	{"my team is ", "team"}, {"my team ", "team"}, {"our team is ", "team"}, {"our team ", "team"}, {"the team ", "team"},
	{"my company is ", "company"}, {"my company ", "company"}, {"our company ", "company"},
	{"i am ", "self"}, {"i'm ", "self"}, {"i have ", "self"}, {"i've ", "self"}, {"i will ", "self"}, {"i'll ", "self"}, {"i ", "self"},
	{"we are ", "team"}, {"we're ", "team"}, {"we have ", "team"}, {"we've ", "team"}, {"we ", "team"},
	{"my ", "self"}, {"our ", "team"}, {"please ", "self"},
}

// kindOf reads the type off the words a sentence uses. What it says of a liking
// counts before what it says of a decision, and so on.
func kindOf(said []string) string {
	var preference, decision, goal, named, own, event bool
	for _, w := range said {
		switch w {
		case "prefer", "prefers", "like", "likes", "love", "loves", "hate", "hates", "dislike", "dislikes", "favourite", "favorite", "rather":
			preference = true
		case "decided", "decide", "chose", "agreed", "settled":
			decision = true
		case "want", "wants", "plan", "plans", "planning", "goal", "hope", "hopes":
			goal = true
		case "name", "named", "called":
			named = true
		case "my", "our", "am", "i'm":
			own = true
		case "yesterday", "tomorrow", "ago", "last", "went", "ran", "met", "finished", "happened", "moved", "started":
			event = true
		}
	}
	switch {
	case preference:
		return "preference"
	case decision:
		return "decision"
	case goal:
		return "goal"
	case named && own:
		return "identity"
	case event:
		return "event"
	default:
		return "fact"
	}
}

// key is the subject and the first stem of what is said about it.
func key(subject, text string) string {
	for w := range wordsOf(text) {
		if carries(w) {
			return subject + "/" + stem(w)
		}
	}
	return subject
}

func capitalise(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

// cut keeps the first n runes.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return strings.TrimSpace(s[:i])
		}
		n--
	}
	return s
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
