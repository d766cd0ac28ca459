package doc_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/internal/doc"
)

// Whatever a caller writes comes back as encoding/json would give it back.
func TestStringsComeBackAsJSONHasThem(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"plain", `"quoted" \back`, "line\nbreak\ttab\x00nul\x1f", "käse 日本 🧀 \u2028", "<a&b>", "broken \xff\xc3(", "\xed\xa0\x80", strings.Repeat("x", 3000)} {
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var want string
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		task := protocol.Task{ID: s, Command: &protocol.Command{Text: s, Metadata: json.RawMessage(s), Tags: []string{s}, Messages: []protocol.Message{{Content: s}}}}
		written, err := doc.OfTask(&task)
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(written) {
			t.Fatalf("no JSON: %s", written)
		}
		got, err := doc.Task(written, 0)
		if err != nil {
			t.Fatal(err)
		}
		c := got.Command
		for _, g := range []string{got.ID, c.Text, string(c.Metadata), c.Tags[0], c.Messages[0].Content} {
			if g != want {
				t.Errorf("%q came back as %q, want %q", s, g, want)
			}
		}
		var members map[string]any
		if err := json.Unmarshal(written, &members); err != nil || members["id"] != want {
			t.Errorf("others read %q: %v", members["id"], err)
		}
	}
}

// What encoding/json wrote with its own escapes and spaces, and members of a
// later version, are read.
func TestOtherWritersAreRead(t *testing.T) {
	t.Parallel()
	got, err := doc.Task([]byte(` { "id" : "\u003c\ud83e\uddc0\/", "later" : [ { "a" : [1.5e3, true, null, "\"]"] }, {} ],
		"lease":null, "plan" : {"hash":"", "mutations":[], "evidence":null}, "command" : null, "failure":{"class":"c","new":{}}, "run" : -3 } `), 7)
	want := protocol.Task{ID: "<🧀/", Version: 7, Run: -3, Plan: &protocol.Plan{Mutations: []protocol.Mutation{}}, Failure: &protocol.Failure{Class: "c"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestWhatIsNoDocumentIsRefused(t *testing.T) {
	t.Parallel()
	whole, err := doc.OfTask(&protocol.Task{ID: "a", Command: &protocol.Command{Text: "b", Tags: []string{"c"}}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		if got, err := doc.Task(whole[:i], 1); err == nil {
			t.Errorf("%s gives %+v", whole[:i], got)
		}
	}
	deep := `{"later":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`
	for _, s := range []string{``, `[]`, `"a"`, `{"id":1}`, `{"run":"1"}`, `{"run":1.5}`, `{"run":+1}`, `{"run":99999999999999999999}`, `{"committed":1}`, `{"id":"a" "b":"c"}`,
		`{"id":"a",}`, `{,}`, `{"id":"a"}}`, `{"id":"\x"}`, "{\"id\":\"a\nb\"}", `{"created":"yesterday"}`, `{"fingerprint":"?"}`, `{"command":[]}`, `{"later":nul}`, `{"later":}`, deep} {
		if got, err := doc.Task([]byte(s), 1); err == nil {
			t.Errorf("%s gives %+v", s, got)
		}
	}
}

func BenchmarkTask(b *testing.B) {
	want := filled[protocol.Task]()
	raw, _ := doc.OfTask(&want)
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := doc.Task(raw, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("write", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := doc.OfTask(&want); err != nil {
				b.Fatal(err)
			}
		}
	})
}
