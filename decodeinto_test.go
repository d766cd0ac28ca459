package memwrite

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/memwrite/memwrite-go/internal/jsonwalk"
)

// An answer to Add is read as encoding/json reads it, whatever it is.
func FuzzAddAnswer(f *testing.F) {
	for _, doc := range []string{
		`{"id":66438,"text":"Ships releases every Thursday","type":"fact","importance":0.5,"tags":["work","releases"],"source":"notes","event_type":"note","created_at":"2026-06-16T09:30:00.000Z","metadata":{"memwrite_text_sha256":"ab"}}`,
		`{"id":1,"memory":{"id":2},"metadata":null,"tags":[],"is_summary":true,"score":1e3,"quality_score":0.5,"key_points":["a"]}`,
		`{"status":"skipped","reason":"already_ingested","memory_ids":[7,8]}`, `{"status":"ok"}`,
		`{"memory_id":9}`, `{"id":null}`, `{"id":1,"id":null,"id":2}`, `{"id":"1"}`, `{"id":1.0}`, `{"id":1e0}`, `{"id":99999999999999999999}`,
		`{"ID":5,"Text":"folded"}`, "{\"\u017fource\":\"folded\"}", `{"te\u0078t":"escaped name"}`, `{"text":"escaped \u00e9"}`, "{\"text\":\"\xff\"}",
		`{"tags":["a",null]}`, `{"tags":["a",1]}`, `{"tags":null}`, `{"tags":["a","b"],"tags":["c"]}`, `{"tags":["\n"]}`,
		`{"score":1e999}`, `{"score":"NaN"}`, `{"score":null,"importance":-0}`, `{"is_summary":1}`, `{"summary":{}}`,
		` { "id" : 3 , "text" : "spaces" , "metadata" : { "a" : [ 1 , { } ] } } `,
		`{"id":1}x`, `{"id":1`, `[]`, `null`, `7`, `"id"`, ``,
	} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		var want, got addAnswer
		wrong := json.Unmarshal(doc, &want)
		err := got.decode(doc)
		if (err == nil) != (wrong == nil) {
			t.Fatalf("%q: %v, not %v", doc, err, wrong)
		}
		if err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%q:\n%+v, not\n%+v", doc, got, want)
		}
	})
}

// The usual answers are read without reflection: a field of the kind is named
// in set, or the gain is gone unseen.
func TestTheUsualAnswersAreReadByTheWalk(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{
		`{"id":66438,"text":"a","type":"fact","importance":0.5,"tags":["b"],"source":"n","event_type":"e","created_at":"c","updated_at":"u","expires_at":null,"metadata":{"x":{}},"summary":"s","tier":"t","memory_type":"m","session_id":"i","is_summary":false,"score":0.1,"quality_score":null,"key_points":[]}`,
		`{"id":1,"text":"with \"escapes\"","quality_score":0.5,"key_points":["a"]}`,
		`{"status":"skipped","reason":"below_threshold"}`, `{"status":"ok"}`, `{"memory_id":9,"status":"stored"}`,
	} {
		var a addAnswer
		if !jsonwalk.Fields([]byte(doc), a.set) {
			t.Errorf("%s goes to encoding/json", doc)
		}
	}
}
