package worker_test

import (
	"strings"
	"testing"

	"github.com/memwrite/memwrite-go/worker"
)

func TestDecodeNamesTheRecord(t *testing.T) {
	t.Parallel()
	for data, identity := range map[string]string{
		`{"id":"0001","end_user":"acme","text":"t"}`:                                                                   "record-0001",
		`{"kind":"note","id":"0001","version":2,"end_user":"acme","text":"t"}`:                                         "note-0001-v2",
		`{"ref":"made-elsewhere","end_user":"acme","text":"t"}`:                                                        "made-elsewhere",
		`{"write":"infer","kind":"note","id":"1","run_id":"r","messages":[{"role":"user","content":"t"}]}`:             "note-1",
		`{"write":"verbatim","kind":"note","id":"1","end_user":"acme","text":"t"}`:                                     "note-1",
		`{"write":"turn","end_user":"sam","speaker":"sam","occurred_at":"2026-06-16T09:30:00.000Z","text":"t"}` + "\n": "sam@2026-06-16T09:30:00.000Z",
	} {
		r, err := worker.Decode([]byte(data))
		if err != nil || r.Identity() != identity {
			t.Errorf("%s: %q, %v", data, r.Identity(), err)
		}
	}
}

// A record that is read has an identity, and an error never shows the text.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"kind":"note","id":"0001","version":2,"end_user":"acme","text":"sesame street"}`))
	f.Add([]byte(`{"write":"turn","end_user":"sam","speaker":"sam","occurred_at":"x","text":"sesame street"}`))
	f.Add([]byte(`{"text":"sesame street","tags":7}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := worker.Decode(data)
		if err == nil && r.Identity() == "" {
			t.Errorf("%q has no identity", data)
		}
		if err != nil && strings.Contains(err.Error(), "sesame street") && !strings.Contains(string(data), `"sesame street":`) {
			t.Errorf("%q: the error quotes the text: %v", data, err)
		}
	})
}
