package memwrite

import "testing"

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
