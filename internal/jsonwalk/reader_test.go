package jsonwalk_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/memwrite/memwrite-go/internal/jsonwalk"
)

// Documents are read by hand, so they are held against encoding/json: the same
// are taken, and they say the same.
func FuzzDocuments(f *testing.F) {
	for _, s := range []string{
		`{}`, ` { "a" : 1 , "b":[1,{"c":"}"}], "a":"\"\\" } `, `{"\u0061":null,"é":true}`, `{"a":-1e5,"b":{"c":[]}}`, `{"":"","":{}}`, `{"\ud800":1}`,
		"{\"text\":\"My team\\nships\",\"client_ref\":\"note-1\"}", "{\"a\":\"\xff\",\"\xff\":1}", `{"a":[true,false,null,0,-0.5,1E+9,"\u00e9\/"]}`,
		`["a",["b"],{}]`, `[]`, `"x"`, `7`, `null`, ``, `{"a":1}}`, `{"a":1,}`, `{,}`, `[1,]`, `{"a" "b"}`, `{"a":}`, `{a:1}`, `{"a":nul}`, `{"a":truex}`,
		`{"a":1`, "{\"a\":1}\x00",
	} {
		f.Add([]byte(s))
	}
	for _, s := range []string{`01`, `-`, `1.`, `.5`, `1e`, `1e-5`, `+1`, `"\x"`, `"\u12g4"`, `"\u12"`, "\"\n\"", "\"\x1f\"", `"`, `"\`, `tru`, `nulll`, `1 "b":2`, `[1 2]`} {
		f.Add([]byte(`{"a":` + s + `}`))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		if deep(doc) {
			return
		}
		got, ok := read(doc)
		var want any
		if err := json.Unmarshal(doc, &want); ok != (err == nil) {
			t.Fatalf("%q: taken: %v, encoding/json says %v", doc, ok, err)
		}
		if ok && !reflect.DeepEqual(got, want) {
			t.Fatalf("%q is read as %v, want %v", doc, got, want)
		}

		var fields map[string]json.RawMessage
		err := json.Unmarshal(doc, &fields)
		seen := map[string]json.RawMessage{}
		ok = jsonwalk.Fields(doc, func(name, value []byte) bool {
			if seen[string(name)] = value; cap(value) != len(value) {
				t.Errorf("%q: appending to %q would write over what follows", doc, value)
			}
			return true
		})
		if ok != (err == nil && fields != nil) {
			t.Fatalf("%q: taken for an object: %v, encoding/json says %v", doc, ok, err)
		}
		if ok && !reflect.DeepEqual(seen, fields) {
			t.Fatalf("%q has the fields %q, want %q", doc, seen, fields)
		}
	})
}

// read makes of a document what encoding/json makes of it, through the methods
// that read each kind.
func read(doc []byte) (any, bool) {
	r := jsonwalk.Of(doc)
	v := value(&r)
	return v, r.End() == nil
}

func value(r *jsonwalk.Reader) any {
	switch r.Peek() {
	case '{':
		m := map[string]any{}
		r.Object(func(name []byte) { m[string(name)] = value(r) })
		return m
	case '[':
		list := []any{}
		r.Array(func() { list = append(list, value(r)) })
		return list
	case '"':
		return string(r.Text())
	case 't', 'f':
		return r.Bool()
	}
	if r.Null() {
		return nil
	}
	var n float64
	if json.Unmarshal(r.Number(), &n) != nil { // out of range
		r.Fail()
	}
	return n
}

// deep is more than what is gone into here, about.
func deep(doc []byte) bool {
	s := string(doc)
	return strings.Count(s, "[")+strings.Count(s, "{") > 100
}

// What nests too deep is refused before it costs a stack.
func TestDepthIsBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		depth int
		want  bool
	}{{1, true}, {100, true}, {102, false}, {1_000_000, false}} {
		doc := `{"a":` + strings.Repeat("[", c.depth) + strings.Repeat("]", c.depth) + `}`
		if got := jsonwalk.Fields([]byte(doc), func(_, _ []byte) bool { return true }); got != c.want {
			t.Errorf("%d levels: %v", c.depth, got)
		}
	}
}

// A walk is stopped by whoever does not want what it finds.
func TestFieldsStop(t *testing.T) {
	t.Parallel()
	n := 0
	if jsonwalk.Fields([]byte(`{"a":1,"b":2,"c":3}`), func(name, _ []byte) bool { n++; return string(name) != "b" }) || n != 2 {
		t.Errorf("%d fields were given", n)
	}
}

// Text without escapes costs no copy, nor does a value.
func TestReadingMakesNothing(t *testing.T) {
	doc := []byte(`{"id":1,"text":"Ships releases every Thursday","tags":["a","b"],"metadata":{"a":[1,{"b":null}]},"ok":true}`)
	if n := testing.AllocsPerRun(100, func() {
		jsonwalk.Fields(doc, func(_, value []byte) bool {
			_, _ = jsonwalk.Unquote(value)
			return true
		})
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
