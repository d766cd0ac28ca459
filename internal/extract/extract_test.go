package extract

import (
	"strings"
	"testing"
)

func TestTheArticlesExamples(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, want, kind string }{
		{"My team ships releases every Thursday.", "Ships releases every Thursday", "fact"},
		{"I am allergic to peanuts.", "Allergic to peanuts", "fact"},
		{"I ran my first 10K last weekend and finished in 58 minutes.", "Ran my first 10K last weekend and finished in 58 minutes", "event"},
		{"I prefer tea over coffee!", "Prefer tea over coffee", "preference"},
		{"Runs v1.2 of the agent at 9 a.m. daily", "Runs v1.2 of the agent at 9 a.m", "fact"},
	} {
		got := Facts(tc.in)
		if len(got) == 0 || got[0].Text != tc.want || got[0].Type != tc.kind {
			t.Errorf("Facts(%q) = %+v, want %q of type %s", tc.in, got, tc.want, tc.kind)
		}
	}
}

func TestFillerHoldsNothing(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"", "hi", "ok", "Thanks!", "Thank you so much!", "Hello there. Good morning!", "How are you?", "…", "12345", "Thanks, that's all for today."} {
		if got := Facts(in); len(got) != 0 {
			t.Errorf("Facts(%q) = %+v, want none", in, got)
		}
	}
}

func TestLowValueTurns(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]bool{
		"": true, "123 456": true, "ok": true, "releases": true, "ok thanks": true,
		"likes tea": false, "I ran 10K": false, "我每个星期四都会发布新的版本": false,
	} {
		if got := LowValue(in); got != want {
			t.Errorf("LowValue(%q) = %v, want %v", in, got, want)
		}
	}
}

func TestSameComparesByMeaning(t *testing.T) {
	t.Parallel()
	if !Same("Ships releases every Thursday", "ships a release every Thursday!") {
		t.Error("wording without meaning made a difference")
	}
	if Same("Ships releases every Thursday", "Ships releases every Friday") {
		t.Error("another day is another fact")
	}
	if Same("", "the") {
		t.Error("two texts without meaning are not the same fact")
	}
}

func TestSeveralSentencesGiveSeveralFacts(t *testing.T) {
	t.Parallel()
	got := Facts("Hi! We use Postgres 16. I prefer short answers.\nThanks")
	if len(got) != 2 || got[0].Text != "Use Postgres 16" || got[1].Type != "preference" {
		t.Fatalf("got %+v", got)
	}
	if got[0].Key == got[1].Key {
		t.Errorf("both facts have the key %q", got[0].Key)
	}
	if n := len(Facts(strings.Repeat("We use Postgres 16. ", 1000))); n != MaxFacts {
		t.Errorf("%d facts from a thousand sentences, want %d", n, MaxFacts)
	}
}

func TestEmbeddingRanksSharedWordsFirst(t *testing.T) {
	t.Parallel()
	q := Embed("when do we release?")
	near := Score(q, Embed("Ships releases every Thursday"))
	far := Score(q, Embed("Allergic to peanuts"))
	if near <= far {
		t.Errorf("release scores %.3f, peanuts %.3f", near, far)
	}
	if s := Score(q, q); s < 0.999 {
		t.Errorf("a text scores %.3f with itself", s)
	}
	if s := Score(Embed("the"), q); s != 0 {
		t.Errorf("a text without meaning scores %.3f", s)
	}
}

func FuzzFacts(f *testing.F) {
	for _, s := range []string{"My team ships releases every Thursday.", "hi", "I \xff", "İ am here now today x", "？。！", "I 'm"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, got := range Facts(s) {
			if strings.TrimSpace(got.Text) == "" || got.Type == "" || got.Key == "" {
				t.Fatalf("Facts(%q) holds %+v", s, got)
			}
		}
		if len(Embed(s)) != Dimensions {
			t.Fatal("an embedding of another length")
		}
	})
}

// Words that cancel each other out leave the rounding of their sum, which is
// nothing in common: an index that sums in another precision sees none.
func TestARoundedSumIsNothingInCommon(t *testing.T) {
	t.Parallel()
	words := strings.Fields("tea release thursday team peanuts allergic paris house garden postgres index running marathon guitar")
	var texts []string
	for i, a := range words {
		for _, b := range words[:i] {
			texts = append(texts, a+" "+b)
		}
	}
	left := 0
	for _, a := range texts {
		v := Embed(a)
		for _, b := range texts {
			w := Embed(b)
			var sum float32
			for i := range v {
				sum += v[i] * w[i]
			}
			s := Score(v, w)
			if s > 0 && s < 1e-3 {
				t.Errorf("%q and %q have %g in common", a, b, s)
			}
			if s == 0 && sum > 0 {
				left++
			}
		}
	}
	if left == 0 {
		t.Error("no sum was rounded: the test shows nothing")
	}
}
