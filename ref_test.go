package memwrite_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	memwrite "github.com/memwrite/memwrite-go"
)

// These strings are stored in other people's databases. They never change.
func TestRefGoldenVectors(t *testing.T) {
	t.Parallel()
	for _, v := range []struct {
		ref  memwrite.Ref
		want string
	}{
		{memwrite.NewRef("note", "0001"), "note-0001"},
		{memwrite.NewRef("note", "0001").Version(2), "note-0001-v2"},
		{memwrite.NewRef("note", "0001").ForContent("My team ships releases every Thursday."), "note-0001-h1de944c34da0dbf0d9710f40"},
		{memwrite.NewRef("note", "0001").Version(2).ForContent(""), "note-0001-v2-he3b0c44298fc1c149afbf4c8"},
		{memwrite.NewRef("note", "0001-v2"), "note-~0001~2dv2"},
		{memwrite.NewRef("note", "0001-v"), "note-0001-v"},
		{memwrite.NewRef("note", "x-he3b0c44298fc1c149afbf4c8"), "note-~x~2dhe3b0c44298fc1c149afbf4c8"},
		{memwrite.NewRef("note", "a b"), "note-~a~20b"},
		{memwrite.NewRef("note", "~a"), "note-~~7ea"},
		{memwrite.NewRef("note", "é"), "note-~~c3~a9"},
		{memwrite.NewRef("note", "550e8400-e29b-41d4-a716-446655440000"), "note-550e8400-e29b-41d4-a716-446655440000"},
		{memwrite.NewRef("note", strings.Repeat("x", 200)), "note-=aa20c23e3201834050679e1d88941b9a6fed0557"},
	} {
		if got := v.ref.String(); got != v.want {
			t.Errorf("got %q, want %q", got, v.want)
		}
	}
}

func TestRefKeepsItsMistake(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]memwrite.Ref{
		"empty kind":         memwrite.NewRef("", "1"),
		"empty id":           memwrite.NewRef("note", ""),
		"upper case kind":    memwrite.NewRef("Note", "1"),
		"dash in kind":       memwrite.NewRef("no-te", "1"),
		"long kind":          memwrite.NewRef(strings.Repeat("k", 33), "1"),
		"version nought":     memwrite.NewRef("note", "1").Version(0),
		"empty string":       memwrite.RefFromString(""),
		"version of foreign": memwrite.RefFromString("x").Version(2),
	} {
		if err := r.ForContent("t").Err(); !errors.Is(err, memwrite.ErrInvalidInput) {
			t.Errorf("%s: %v", name, err)
		}
		if s := r.String(); name != "version of foreign" && s != "" {
			t.Errorf("%s: %q", name, s)
		}
	}
}

// Two different (kind, id, version, content) never share a string, and every
// string fits both identities.
func FuzzRefIsInjective(f *testing.F) {
	f.Add("note", "0001", 2, "a", "note", "0001-v2", 0, "a")
	f.Add("note", "a-v2", 3, "", "note", "a", 2, "-v3")
	f.Add("note", "v2", 0, "", "note", "v2-v2", 0, "")
	f.Add("a", "~a", 0, "", "a", "=a", 0, "")
	f.Add("a", "=aa20c23e3201834050679e1d88941b9a6fed0557", 0, "", "a", strings.Repeat("x", 200), 0, "")
	f.Add("a_b", "c", 0, "", "a", "b-c", 0, "")
	f.Add("k", "\x00\xff", 1, "x", "k", "é ", 1, "x")
	f.Fuzz(func(t *testing.T, kind1, id1 string, v1 int, c1, kind2, id2 string, v2 int, c2 string) {
		make := func(kind, id string, v int, c string) memwrite.Ref {
			r := memwrite.NewRef(kind, id)
			if v != 0 {
				r = r.Version(v)
			}
			if c != "" {
				r = r.ForContent(c)
			}
			return r
		}
		a, b := make(kind1, id1, v1, c1), make(kind2, id2, v2, c2)
		for _, r := range []memwrite.Ref{a, b} {
			s := r.String()
			if (r.Err() == nil) == (s == "") {
				t.Fatalf("%q with error %v", s, r.Err())
			}
			if utf8.RuneCountInString(s) > memwrite.MaxClientRef || len(s) > memwrite.MaxIdempotencyKey {
				t.Fatalf("%q is too long", s)
			}
			for i := range len(s) {
				if s[i] <= ' ' || s[i] > '~' {
					t.Fatalf("%q is not visible ASCII", s)
				}
			}
		}
		same := kind1 == kind2 && id1 == id2 && v1 == v2 && c1 == c2
		if a.Err() == nil && b.Err() == nil && (a.String() == b.String()) != same {
			t.Fatalf("%q and %q", a, b)
		}
	})
}
