package memwrite

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/memwrite/memwrite-go/internal/api"
)

// contractBody is the same body through the contract's type and encoding/json.
func contractBody(t *testing.T, ref string, req AddRequest) string {
	t.Helper()
	meta := map[string]json.RawMessage{}
	if len(req.Metadata) > 0 {
		if err := json.Unmarshal(req.Metadata, &meta); err != nil {
			t.Fatal(err)
		}
	}
	hash, err := encodeBody("", textHash(req.Text))
	if err != nil {
		t.Fatal(err)
	}
	quoted, err := encodeBody("", ref)
	if err != nil {
		t.Fatal(err)
	}
	own := `"` + HashField + `":` + string(hash)
	if ref != "" {
		own += `,"` + RefField + `":` + string(quoted)
	}
	whole := "{" + own + "}"
	if len(meta) > 0 {
		whole = strings.TrimSuffix(strings.TrimSpace(string(req.Metadata)), "}") + "," + own + "}"
	}
	b := api.AddMemoryRequest{
		ClientRef: ptr(ref), Deduplicate: req.Deduplicate, EventType: ptr(req.EventType), Importance: req.Importance,
		Metadata: json.RawMessage(whole), SessionID: ptr(req.SessionID), Source: ptr(req.Source),
		Text: ptr(req.Text), TTLMinutes: req.TTLMinutes,
	}
	if len(req.Tags) > 0 {
		b.Tags = &req.Tags
	}
	body, err := encodeBody("", b)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func fullAdd() AddRequest {
	yes, minutes, importance := true, 5, 0.25
	return AddRequest{
		Text: "My team ships <releases> every Thursday & Friday.", EndUserID: "acme", Source: "notes", EventType: "note",
		SessionID: "s-1", Tags: []string{"work", "a \"b\"\n"}, TTLMinutes: &minutes, Importance: &importance, Deduplicate: &yes,
		Metadata: json.RawMessage(" {\n\t\"n\" : 12345678901234567890, \"deep\": {\"a b\":[1.0, 1e3]}}\n"),
	}
}

// Add encodes its body itself. What the contract gains, it must gain too.
func TestAddsBodyIsTheContracts(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*AddRequest){
		"full":           func(*AddRequest) {},
		"bare":           func(r *AddRequest) { *r = AddRequest{Text: r.Text} },
		"empty metadata": func(r *AddRequest) { r.Metadata = json.RawMessage(" { } ") },
		"a small number": func(r *AddRequest) { *r.Importance = 1e-7 },
	} {
		for _, ref := range []string{"note-0001", ""} {
			req := fullAdd()
			change(&req)
			got, err := addBody("Add", ref, req)
			if want := contractBody(t, ref, req); err != nil || string(got) != want {
				t.Errorf("%s:\ngot  %s\nwant %s\n%v", name, got, want, err)
			}
		}
	}
	body, err := addBody("Add", "note-0001", fullAdd())
	if err != nil {
		t.Fatal(err)
	}
	var sent map[string]any
	if err := json.Unmarshal(body, &sent); err != nil {
		t.Fatal(err)
	}
	contract := reflect.TypeFor[api.AddMemoryRequest]()
	for i := range contract.NumField() {
		name, _, _ := strings.Cut(contract.Field(i).Tag.Get("json"), ",")
		if _, ok := sent[name]; !ok && name != "content" { // an alias of text
			t.Errorf("Add does not send %s", name)
		}
	}
}

// Whatever a text holds, it is written as encoding/json writes it.
func FuzzAddBody(f *testing.F) {
	f.Add("My team ships releases every Thursday.", "note-0001", "work")
	f.Add("quotes \" and \\ and \x00\x1f\x7f\b\f\n\r\t", "a\"b", "<&>")
	f.Add("line \u2028 and \u2029 separators, 記憶, \U0001f600", "note-é", "\xff\xfe")
	f.Add("cut \xe2\x80", "\xed\xa0\x80", "\ufffd")
	f.Fuzz(func(t *testing.T, text, ref, other string) {
		req := AddRequest{Text: text, Source: other, EventType: ref, SessionID: other, Tags: []string{other, text}}
		if text == "" {
			return // refused before
		}
		got, err := addBody("Add", ref, req)
		if want := contractBody(t, ref, req); err != nil || string(got) != want {
			t.Errorf("got  %q\nwant %q\n%v", got, want, err)
		}
	})
}
