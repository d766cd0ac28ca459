package service

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestBodiesThatAreRefusedWhole(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000)
	for name, tc := range map[string]struct {
		body, contentType string
		want              error
	}{
		"trailing bytes":   {`{"text":"a"} x`, "application/json", errNotObject},
		"two objects":      {`{} {}`, "application/json", errNotObject},
		"array":            {`[]`, "application/json", errNotObject},
		"null":             {`null`, "application/json", errNotObject},
		"empty":            {``, "application/json", errNotObject},
		"not UTF-8":        {"{\"text\":\"\xff\"}", "application/json", errNotObject},
		"cut":              {`{"text":"a`, "application/json", errNotObject},
		"plain text":       {`{}`, "text/plain", errContentType},
		"no content type":  {`{}`, "", errContentType},
		"too large":        {`{"text":"` + strings.Repeat("a", 1<<20) + `"}`, "application/json", errTooLarge},
		"nested too deep":  {deep, "application/json", errTooDeep},
		"brackets in text": {`{"text":"` + strings.Repeat("[", 1000) + `"}`, "application/json", nil},
		"charset":          {`{}`, "application/json; charset=utf-8", nil},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(tc.body))
		r.Header.Set("Content-Type", tc.contentType)
		r.ContentLength = -1
		if _, err := readObject(httptest.NewRecorder(), r, 1<<20, true); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
}

// Of two fields of one name the later one counts.
func TestFieldsAreCheckedAndTheRestIsDropped(t *testing.T) {
	t.Parallel()
	o, err := parseObject([]byte(`{"a":"one","a":1,"b":null,"c":"héé","d":[1],"e":2.5,"TEXT":"x","unknown":{"x":1}}`), true)
	if err != nil {
		t.Fatal(err)
	}
	o.text("a", 0)
	o.text("b", 0)
	o.text("c", 2)
	o.texts("d", 5)
	o.integer("e", 0, 9)
	if got := o.required("text", 0); got != "" {
		t.Errorf("a field of another case was taken: %q", got)
	}
	want := []string{"a type", "b null", "c length", "d type", "e type", "text missing"}
	for i, p := range o.problems() {
		if got := p.Field + " " + p.Type; i >= len(want) || got != want[i] {
			t.Errorf("problem %d is %q", i, got)
		}
	}
	if len(o.problems()) != len(want) {
		t.Errorf("%d problems, want %d", len(o.problems()), len(want))
	}
}

func TestNullMeansAbsentWhereTheServiceSaysSo(t *testing.T) {
	t.Parallel()
	o, _ := parseObject([]byte(`{"source":null}`), false)
	if _, ok := o.text("source", 64); ok || len(o.problems()) != 0 {
		t.Errorf("null was not an absence: %v", o.problems())
	}
}

func FuzzParseObject(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":[[]]}`, `{"a":"\"}"}`, "\xff", `{"a":1}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := parseObject(b, true)
		var want map[string]json.RawMessage
		if is := json.Unmarshal(b, &want) == nil && want != nil; is != (err == nil) && (err == nil || utf8.Valid(b)) && depth(b) <= maxDepth {
			t.Fatalf("%q gave %+v, %v", b, o, err)
		}
	})
}
