package model

import (
	"errors"
	"testing"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

func FuzzFacts(f *testing.F) {
	f.Add([]byte(`{"choices": [{"finish_reason": "stop", "message": {"content": "{\"facts\": [{\"text\": \"Likes tea\", \"type\": \"preference\", \"subject\": \"self\", \"topic\": \"tea\", \"only\": false}]}"}}]}`))
	f.Add([]byte(`{"choices": [{"message": {"refusal": "no"}}]}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := facts(raw)
		var failure *protocol.Failure
		if err != nil && !errors.As(err, &failure) {
			t.Fatalf("an error without a class: %v", err)
		}
		for _, fact := range got {
			if fact.Text == "" || fact.Type == "" || len(fact.Key) < 3 {
				t.Fatalf("%+v", fact)
			}
		}
	})
}
