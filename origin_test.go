package memwrite

import (
	"encoding/json"
	"testing"
)

// What the walk over the bytes finds is what encoding/json finds.
func FuzzOriginOf(f *testing.F) {
	for _, doc := range []string{
		``, `null`, `{}`, `[]`, `"memwrite_client_ref"`, `{`, `{"`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":"\\`, `{]`, `{,}`,
		`{"memwrite_text_sha256":"ab","memwrite_client_ref":"note-1"}`,
		`{"memwrite_client_ref":"note-1","memwrite_text_sha256":"ab","team":"x"}`,
		`{"memwrite_text_sha256":"ab"}`, `{"memwrite_client_ref":"note-1"}`,
		" {\"memwrite_text_sha256\" :\t\"ab\" ,\r\n\"memwrite_client_ref\" : \"note-1\" } ",
		`{"a":{"memwrite_client_ref":"inner"},"memwrite_client_ref":"outer"}`,
		`{"a":"memwrite_client_ref","memwrite_client_ref":"note-1"}`,
		`{"memwrite_client_ref":"one","memwrite_client_ref":"two"}`,
		`{"memwrite_client_ref":"one","memwrite_client_ref":null}`,
		`{"memwrite_client_ref":"a\"b\\","memwrite_text_sha256":"ab"}`,
		`{"memwrite_client_ref":7,"memwrite_text_sha256":"ab"}`,
		`{"a":"{","b":"]\\","memwrite_client_ref":"note-1"}`,
		`{"tags":["memwrite_client_ref","memwrite_text_sha256",[{}],{"a":[]}]}`,
		`{"Memwrite_Client_Ref":"folded"}`, "{\"memwrite_client_ref\":\"\xff\"}",
	} {
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		got := originOf(json.RawMessage(doc)) // of anything, it ends
		if !json.Valid([]byte(doc)) {
			return
		}
		var want origin
		if json.Unmarshal([]byte(doc), &want) != nil {
			want = origin{}
		}
		if got != want {
			t.Errorf("%s: %+v, not %+v", doc, got, want)
		}
	})
}
