package protocol

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

func decodeNumbers(doc []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}

// The canonical form of a document says the same and is its own canonical form,
// however the document was spelled.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`{"b":1,"a":[1,2.0,{"y":null,"x":"<&>"}]}`, `12345678901234567890`, ` null `, `{"a":1,"a":2}`, `{`, `{} {}`, "\"\xff\"", `"\u2028"`, `1e400`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		before := bytes.Clone(doc)
		out := Canonical(doc)
		if !bytes.Equal(doc, before) {
			t.Fatal("the document was changed")
		}
		if again := Canonical(out); !bytes.Equal(again, out) {
			t.Fatalf("%q, canonical %q, again %q", doc, out, again)
		}
		if !json.Valid(doc) {
			return
		}
		was, err := decodeNumbers(doc)
		if err != nil {
			t.Fatal(err)
		}
		if was == nil {
			if out != nil {
				t.Fatalf("null becomes %q", out)
			}
			return
		}
		is, err := decodeNumbers(out)
		if err != nil || !reflect.DeepEqual(was, is) {
			t.Fatalf("%q becomes %q (%v)", doc, out, err)
		}
	})
}

// Two commands have one fingerprint if and only if they mean the same: no text
// moves from one field into the next unseen.
func FuzzFingerprint(f *testing.F) {
	f.Add("a", "b", "c", "d", 1, uint8(0))
	f.Add("", "", "", "", 0, uint8(1))
	f.Add("ab", "", "c", `{"x":1}`, 1, uint8(2))
	f.Add("\x00", "\x00\x00", "", "null", 2, uint8(255))
	f.Fuzz(func(t *testing.T, text, speaker, user, metadata string, cut int, bits uint8) {
		c := &Command{Kind: Infer, Scope: Scope{UserID: user}, Text: text, Speaker: speaker, Metadata: json.RawMessage(metadata), KeepSimilar: bits&1 != 0}
		if bits&2 != 0 {
			c.Messages = []Message{{Role: speaker, Content: text}}
		}
		same := *c
		if Fingerprint(c) != Fingerprint(&same) {
			t.Fatal("one command has two fingerprints")
		}
		differs := func(change func(*Command)) {
			t.Helper()
			other := *c
			change(&other)
			if !reflect.DeepEqual(*c, other) && Fingerprint(c) == Fingerprint(&other) {
				t.Fatalf("%+v and %+v have one fingerprint", *c, other)
			}
		}
		if len(text) > 0 {
			n := max(0, cut%len(text))
			differs(func(o *Command) { o.Text, o.Speaker = text[:n], text[n:]+speaker })
			differs(func(o *Command) { o.Text, o.Scope.UserID = text[:n], user+text[n:] })
		}
		differs(func(o *Command) { o.Kind = Verbatim })
		differs(func(o *Command) { o.Text += " " })
		differs(func(o *Command) { o.KeepSimilar = !o.KeepSimilar })
		differs(func(o *Command) { o.Scope.UserID, o.Scope.AgentID = "", user })
		differs(func(o *Command) { o.Messages = append([]Message{{Role: "user", Content: text}}, o.Messages...) })
		differs(func(o *Command) { o.Tags = []string{text} })
	})
}

// No name of one kind is ever that of another, nor of another workspace.
func FuzzIdentity(f *testing.F) {
	f.Add("w", "t", "p", "u", "r")
	f.Add("", "", "", "", "")
	f.Add("wt", "", "p\x00", "u", "memories")
	f.Fuzz(func(t *testing.T, workspace, tenant, project, user, ref string) {
		seen := map[Hash]string{}
		for name, h := range map[string]Hash{
			"key": CommandKey(workspace, ref), "other key": CommandKey(workspace, ref+"x"), "other workspace": CommandKey(workspace+"x", ref),
			"reference": ClientRef(workspace, tenant, project, user, ref), "other user": ClientRef(workspace, tenant, project, user+"x", ref),
			"moved": ClientRef(workspace, tenant, project+"x", user, ref), "turn": ReplayKey(workspace, tenant, user, project, ref, "text"),
			"other speaker": ReplayKey(workspace, tenant, user, project+"x", ref, "text"),
		} {
			if other := seen[h]; other != "" {
				t.Fatalf("%s and %s are one name", name, other)
			}
			seen[h] = name
		}
	})
}
