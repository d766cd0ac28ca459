package memwrite

import (
	"encoding/json"
	"testing"
)

// What is found among the bytes is what decoding finds.
func FuzzOriginOf(f *testing.F) {
	for _, doc := range []string{
		``, `null`, `{}`, `[]`, `"memwrite_client_ref"`,
		`{"memwrite_text_sha256":"ab","memwrite_client_ref":"note-1"}`,
		`{"memwrite_client_ref":"note-1","memwrite_text_sha256":"ab","team":"x"}`,
		`{"memwrite_text_sha256":"ab"}`, `{"memwrite_client_ref":"note-1"}`,
		`{"memwrite_text_sha256": "ab", "memwrite_client_ref" : "note-1"}`,
		`{"a":{"memwrite_client_ref":"inner"},"memwrite_client_ref":"outer"}`,
		`{"a":"memwrite_client_ref","memwrite_client_ref":"note-1"}`,
		`{"memwrite_client_ref":"one","memwrite_client_ref":"two"}`,
		`{"memwrite_client_ref":"a\"b\\","memwrite_text_sha256":"ab"}`,
		`{"memwrite_client_ref":7,"memwrite_text_sha256":"ab"}`,
		`{"memwrite_client_ref":null,"memwrite_text_sha256":"ab"}`,
		`{"a":"{","memwrite_client_ref":"note-1"}`,
		`{"tags":["memwrite_client_ref","memwrite_text_sha256"]}`,
	} {
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		if !json.Valid([]byte(doc)) {
			t.Skip()
		}
		var fields map[string]any
		if json.Unmarshal([]byte(doc), &fields) != nil {
			fields = nil
		}
		hash, _ := fields[HashField].(string)
		ref, _ := fields[RefField].(string)
		got := originOf(json.RawMessage(doc))
		for _, name := range []string{HashField, RefField} {
			if v, there := fields[name]; there && v != nil {
				if _, isText := v.(string); !isText {
					return // not what Add leaves there
				}
			}
		}
		if got != (origin{hash, ref}) && !foldedName(fields) {
			t.Errorf("%s: %+v", doc, got)
		}
	})
}

// foldedName tells a name of another case, which encoding/json takes as well.
func foldedName(fields map[string]any) bool {
	var o origin
	lower := map[string]any{}
	for name, v := range fields {
		if name != HashField && name != RefField {
			lower[name] = v
		}
	}
	doc, err := json.Marshal(lower)
	return err == nil && (json.Unmarshal(doc, &o) != nil || o != origin{})
}
