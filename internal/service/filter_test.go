package service

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

func aRecord() *filtered {
	return &filtered{
		Record: &Record{
			ID: "0b7c", Text: "Ships releases every Thursday", Type: "fact", Importance: 0.7, EventDate: "2026-07-31T00:00:00.000Z",
			CreatedAt: time.Date(2026, 8, 5, 12, 0, 0, 123_456_789, time.UTC), UpdatedAt: time.Date(2026, 8, 5, 12, 0, 0, 123_456_789, time.UTC),
			Metadata: json.RawMessage(`{"channel":"support","n":3,"open":true,"none":null,"tags":["Red","blue"],"source":{"system":"crm"}}`),
		},
		accesses: access{count: 2, last: time.Date(2026, 8, 6, 0, 0, 0, 0, time.UTC)},
	}
}

func TestFiltersHoldForWhatTheySay(t *testing.T) {
	t.Parallel()
	leaf := func(field, operator, value string) string {
		return fmt.Sprintf(`{"field":%q,"operator":%q,"value":%s}`, field, operator, value)
	}
	for _, tc := range []struct {
		filter string
		want   bool
	}{
		{`{}`, true},
		{`{"channel":"support","n":3,"open":true}`, true},
		{`{"channel":"sales"}`, false},
		{`{"absent":"x"}`, false},
		{`{"tags":"Red"}`, false}, // a map compares whole values
		{`{"and":"support"}`, false},
		{leaf("id", "eq", `"0b7c"`), true},
		{leaf("content", "contains", `"releases"`), true},
		{leaf("content", "contains", `"RELEASES"`), false},
		{leaf("content", "icontains", `"RELEASES"`), true},
		{leaf("memory_type", "in", `["fact","goal"]`), true},
		{leaf("memory_type", "nin", `["fact","goal"]`), false},
		{leaf("importance", "gte", `0.7`), true},
		{leaf("importance", "gt", `0.7`), false},
		{leaf("importance", "lt", `0.8`), true},
		{leaf("importance", "lte", `0.69`), false},
		{leaf("access_count", "eq", `2`), true},
		{leaf("created_at", "eq", `"2026-08-05T12:00:00.123Z"`), true}, // as the wire prints it
		{leaf("created_at", "gt", `"2026-08-05T14:00:00+08:00"`), true},
		{leaf("created_at", "lt", `"2026-08-05T12:00:00Z"`), false},
		{leaf("updated_at", "ne", `"2026-08-05T12:00:00Z"`), true},
		{leaf("event_date", "lte", `"2026-07-31T00:00:00Z"`), true},
		{leaf("last_accessed_at", "gt", `"2026-08-05T23:59:59Z"`), true},
		{leaf("subject", "exists", `false`), true},
		{leaf("subject", "eq", `"alice"`), false},
		{leaf("attribute", "ne", `"role"`), false}, // ne is about a value that is there
		{leaf("metadata.source.system", "eq", `"crm"`), true},
		{leaf("metadata.source.system.deeper", "exists", `true`), false},
		{leaf("metadata.source", "exists", `true`), true},
		{leaf("metadata.source", "eq", `"crm"`), false},
		{leaf("metadata.none", "exists", `false`), true},
		{leaf("metadata.none", "nin", `["x"]`), false},
		{leaf("metadata.n", "gte", `3`), true},
		{leaf("metadata.n", "gt", `"2"`), false}, // a number and a text have no order
		{leaf("metadata.channel", "gt", `"sales"`), true},
		{leaf("metadata.open", "eq", `true`), true},
		{leaf("metadata.open", "ne", `"true"`), true},
		{leaf("metadata.tags", "contains", `"Red"`), true},
		{leaf("metadata.tags", "contains", `"red"`), false},
		{leaf("metadata.tags", "icontains", `"red"`), true},
		{leaf("metadata.tags", "in", `["green","blue"]`), true},
		{leaf("metadata.tags", "nin", `["green"]`), true},
		{`{"not":` + leaf("metadata.channel", "eq", `"sales"`) + `}`, true},
		{`{"and":[` + leaf("metadata.n", "eq", `3`) + `,` + leaf("content", "contains", `"Friday"`) + `]}`, false},
		{`{"or":[` + leaf("metadata.n", "eq", `4`) + `,` + leaf("content", "contains", `"Thursday"`) + `]}`, true},
		{`{"and":[{"or":[` + leaf("metadata.n", "eq", `4`) + `,` + leaf("metadata.n", "eq", `3`) + `]},{"not":` + leaf("id", "exists", `false`) + `}]}`, true},
	} {
		f, err := parseFilter(json.RawMessage(tc.filter))
		if err != nil {
			t.Errorf("%s: %v", tc.filter, err)
			continue
		}
		if got := f.holds(aRecord()); got != tc.want {
			t.Errorf("%s holds: %v", tc.filter, got)
		}
	}
}

func TestFiltersThatAreRefused(t *testing.T) {
	t.Parallel()
	const leaf = `{"field":"id","operator":"eq","value":"x"}`
	many := func(n int, s string) string { return strings.TrimSuffix(strings.Repeat(s+",", n), ",") }
	deep := func(n int) string { return strings.Repeat(`{"not":`, n-1) + leaf + strings.Repeat("}", n-1) }
	wide := `{"and":[` + many(20, `{"or":[`+many(5, leaf)+`]}`) + `]}`
	for name, good := range map[string]string{
		"8 levels": deep(8), "20 parts": `{"or":[` + many(20, leaf) + `]}`, "100 conditions": wide,
		"100 values": `{"field":"id","operator":"in","value":[` + many(100, `"x"`) + `]}`,
	} {
		if _, err := parseFilter(json.RawMessage(good)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	fields := map[string]int{}
	for i := range 21 {
		fields[fmt.Sprint("f", i)] = i
	}
	tooMany, _ := json.Marshal(fields)
	for name, bad := range map[string]string{
		"9 levels": deep(9), "21 parts": `{"or":[` + many(21, leaf) + `]}`, "no part": `{"and":[]}`,
		"101 conditions": `{"and":[` + wide + `,` + leaf + `]}`,
		"101 values":     `{"field":"id","operator":"in","value":[` + many(101, `"x"`) + `]}`,
		"no value":       `{"field":"id","operator":"in","value":[]}`,
		"not an array":   `{"field":"id","operator":"in","value":"x"}`,
		"array for eq":   `{"field":"metadata.a","operator":"eq","value":["x"]}`,
		"object":         `{"field":"metadata.a","operator":"eq","value":{"a":1}}`,
		"null":           `{"field":"metadata.a","operator":"eq","value":null}`,
		"two words":      `{"and":[` + leaf + `],"or":[` + leaf + `]}`,
		"mixed forms":    `{"and":[` + leaf + `],"channel":"support"}`,
		"extra field":    `{"field":"id","operator":"eq","value":"x","more":1}`,
		"no operator":    `{"and":[{"field":"id","value":"x"}]}`,
		"operator":       `{"field":"id","operator":"like","value":"x"}`,
		"scope id":       `{"field":"user_id","operator":"eq","value":"sam"}`,
		"path":           `{"field":"metadata.a b","operator":"eq","value":"x"}`,
		"empty segment":  `{"field":"metadata.a..b","operator":"eq","value":"x"}`,
		"bare metadata":  `{"field":"metadata.","operator":"eq","value":"x"}`,
		"prototype":      `{"field":"metadata.__proto__.x","operator":"eq","value":"x"}`,
		"long path":      `{"field":"metadata.` + strings.Repeat("a", 257) + `","operator":"eq","value":"x"}`,
		"long value":     `{"field":"id","operator":"eq","value":"` + strings.Repeat("a", 1025) + `"}`,
		"text for range": `{"field":"content","operator":"gt","value":"x"}`,
		"number text":    `{"field":"importance","operator":"gt","value":"0.5"}`,
		"number part":    `{"field":"importance","operator":"contains","value":"5"}`,
		"boolean range":  `{"field":"metadata.a","operator":"gt","value":true}`,
		"exists text":    `{"field":"id","operator":"exists","value":"true"}`,
		"date alone":     `{"field":"created_at","operator":"gt","value":"2026-08-05"}`,
		"date number":    `{"field":"created_at","operator":"gt","value":5}`,
		"21 equal":       string(tooMany),
		"long name":      `{"` + strings.Repeat("a", 129) + `":1}`,
		"map of arrays":  `{"a":[1]}`,
		"map of null":    `{"a":null}`,
	} {
		_, err := parseFilter(json.RawMessage(bad))
		if err == nil {
			t.Errorf("%s was taken", name)
		} else if strings.Contains(err.Error(), "aaaa") {
			t.Errorf("%s: the error repeats a value: %v", name, err)
		}
	}
}

// A filter that is taken can be asked about any record, and not of a filter is
// its opposite.
func FuzzParseFilter(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"a":1}`, `{"and":[{"field":"id","operator":"eq","value":"x"}]}`,
		`{"not":{"field":"metadata.tags","operator":"icontains","value":"red"}}`,
		`{"field":"created_at","operator":"gte","value":"2026-07-01T00:00:00+02:00"}`,
		`{"or":[{"field":"metadata.n","operator":"in","value":[1,"2",true]},{"field":"subject","operator":"exists","value":false}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := parseFilter(raw)
		if err != nil {
			return
		}
		r := aRecord()
		if got.holds(r) == (notOf{got}).holds(r) {
			t.Fatal("a filter and its opposite agree")
		}
		got.holds(&filtered{Record: &Record{}})
	})
}
