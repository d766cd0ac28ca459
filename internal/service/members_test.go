package service

import (
	"encoding/json"
	"testing"
	"unicode/utf8"
)

// A body is taken apart by hand, so it is held against encoding/json.
func FuzzMembers(f *testing.F) {
	for _, s := range []string{
		`{}`, ` { "a" : 1 , "b":[1,{"c":"}"}], "a":"\"\\" } `, `{"\u0061":null,"é":true}`, `[]`, `{"a":1}}`, `{"a":-1e5,"b":{"c":[]}}`, `"x"`, ``,
		"{\"text\":\"My team\\nships\",\"client_ref\":\"note-1\"}", `{"":"","":{}}`, `{"\ud800":1}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !utf8.Valid(body) {
			return // refused before
		}
		var want map[string]json.RawMessage
		err := json.Unmarshal(body, &want)
		got, ok := membersOf(body, nil)
		if ok != (err == nil && want != nil) {
			t.Fatalf("%q: taken for an object: %v, encoding/json says %v", body, ok, err)
		}
		o := &object{members: got}
		names := map[string]bool{}
		for _, m := range got {
			names[string(m.name)] = true
		}
		for name, raw := range want {
			if string(o.member(name)) != string(raw) {
				t.Fatalf("%q: %q is %q, want %q", body, name, o.member(name), raw)
			}
			var s string
			read, is := textOf(raw)
			if is != (raw[0] == '"') || (is && (json.Unmarshal(raw, &s) != nil || s != read)) {
				t.Fatalf("%q is read as %q", raw, read)
			}
		}
		if ok && len(names) != len(want) {
			t.Fatalf("%q: %d names, want %d", body, len(names), len(want))
		}
	})
}
