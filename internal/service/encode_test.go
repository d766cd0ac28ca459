package service

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestAMemoryIsWrittenAsItsTypeSays holds the writer against encoding/json.
func TestAMemoryIsWrittenAsItsTypeSays(t *testing.T) {
	t.Parallel()
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~]*`), rapid.SampledFrom([]string{"", "<b>&\u2028\u007f", "half \xff", `"\`}))
	when := rapid.Custom(func(t *rapid.T) time.Time {
		zone := time.FixedZone("", rapid.IntRange(-12, 12).Draw(t, "hours")*3600)
		return time.Unix(rapid.Int64Range(-1<<36, 1<<39).Draw(t, "second"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanosecond")).In(zone)
	})
	rapid.Check(t, func(t *rapid.T) {
		r := Record{
			Number: rapid.Int64().Draw(t, "number"), UserNumber: rapid.Int64().Draw(t, "user"), Text: text.Draw(t, "text"), Type: text.Draw(t, "type"),
			Importance: rapid.OneOf(rapid.Float64Range(0, 1), rapid.Float64Range(-1e30, 1e30), rapid.SampledFrom([]float64{0, 1e-7, 1e21})).Draw(t, "importance"),
			Metadata:   json.RawMessage(rapid.SampledFrom([]string{"", "{}", `{"a": "<", "b": 1.0}`}).Draw(t, "metadata")),
			Source:     text.Draw(t, "source"), EventType: text.Draw(t, "event type"), Tags: rapid.SliceOfN(text, 0, 3).Draw(t, "tags"),
			CreatedAt: when.Draw(t, "created"), UpdatedAt: when.Draw(t, "updated"),
		}
		if rapid.Bool().Draw(t, "expires") {
			r.ExpiresAt = when.Draw(t, "at")
		}
		want, err := json.Marshal(memoryView(r))
		if err != nil {
			t.Fatal(err)
		}
		got, err := appendMemory(nil, &r)
		if err != nil || string(got) != string(want) {
			t.Fatalf("%v\n got %s\nwant %s", err, got, want)
		}
	})
}

func TestMetadataThatIsNoJSONIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := appendMemory(nil, &Record{Metadata: json.RawMessage(`{"a":`)}); err == nil {
		t.Error("no error")
	}
}
