package memwrite

import (
	"strings"
	"testing"
)

func TestAQuoteOfAnyPartOfTheTextIsTakenOut(t *testing.T) {
	t.Parallel()
	text := "Sister Lucia manages the account while I am on leave, her number ends in 4471."
	for name, quote := range map[string]string{
		"whole": text, "beginning": text[:30], "middle": text[20:60], "end": text[len(text)-30:],
	} {
		got := scrubber{text}.clean("value '" + quote + "' is refused, and '" + quote + "' again")
		if want := "value '" + scrubbed + "' is refused, and '" + scrubbed + "' again"; got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := (scrubber{text}).clean("the account is closed"); got != "the account is closed" {
		t.Errorf("a common word was taken out: %q", got)
	}
	if got := (scrubber{"abcdef"}).clean("abcdef abcdefabcdef abcde"); got != scrubbed+" "+scrubbed+" abcde" {
		t.Errorf("a short secret: %q", got)
	}
}

// A quote that is cut to its beginning and its end is shorter than one that is
// found anywhere; a service's own words stay, with dots behind them and without.
func TestAQuoteThatIsCutIsTakenOutToItsEnds(t *testing.T) {
	t.Parallel()
	text := "Sister Lucia manages the account while I am on leave, her number ends in 4471. Please try again later."
	for said, want := range map[string]string{
		// As pydantic and a framework with an ellipsis of one character put it.
		"input_value='" + text[:24] + "..." + text[len(text)-23:] + "'": "input_value='" + scrubbed + "..." + scrubbed + "'",
		"text “" + text[:13] + "…” is too short":                        "text “" + scrubbed + "…” is too short",
		"of …" + text[40:57] + " is all that is known":                  "of …" + scrubbed + "is all that is known",
		"Sister Lucy…": "Sister Lucy…", "the account...": "the account...", "the account is closed...": "the account is closed...",
		"try again...": "try again...", "again later.": "again later.", "manages the account": "manages the account",
		"...": "...", "": "",
	} {
		if got := (scrubber{text}).clean(said); got != want {
			t.Errorf("%q is %q, want %q", said, got, want)
		}
	}
}

// However often an answer and a text repeat themselves, the search ends soon.
func TestCutQuotesAreFoundInLongTexts(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("b Thursday at nine ", 12_000)
	said := strings.Repeat("a Thursday at nine ...", 10_000)
	if got := (scrubber{text}).clean(said); strings.Contains(got[:40], "Thursday") {
		t.Errorf("%q", got[:40])
	}
}
