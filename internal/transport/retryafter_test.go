package transport

import (
	"net/http"
	"testing"
	"time"
)

func TestServerWaitFromEachSource(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	const none = -1
	for _, tc := range []struct {
		name            string
		ms, after, date string
		body            []string
		want            time.Duration
	}{
		{name: "nothing", want: none},
		{name: "milliseconds first", ms: "1500", after: "7", body: []string{"9"}, want: 1500 * time.Millisecond},
		{name: "nonsense in the first falls through", ms: "soon", after: "7", want: 7 * time.Second},
		{name: "seconds", after: "60", want: time.Minute},
		{name: "zero", after: "0", want: 0},
		{name: "decimals", after: "1.5", want: 1500 * time.Millisecond},
		{name: "spaces", after: " 3 ", want: 3 * time.Second},
		{name: "IMF date against the answer's Date", after: "Mon, 30 Nov 2026 10:00:10 GMT", date: "Mon, 30 Nov 2026 10:00:00 GMT", want: 10 * time.Second},
		{name: "IMF date without Date", after: "Mon, 30 Nov 2026 12:00:10 GMT", want: 10 * time.Second},
		{name: "RFC 850 date", after: "Monday, 30-Nov-26 12:00:10 GMT", want: 10 * time.Second},
		{name: "asctime date", after: "Mon Nov 30 12:00:10 2026", want: 10 * time.Second},
		{name: "date in the past", after: "Mon, 30 Nov 2026 11:00:00 GMT", want: 0},
		{name: "year 9999", after: "Fri, 31 Dec 9999 23:59:59 GMT", want: 24 * time.Hour},
		{name: "more than a day", after: "100000", want: 24 * time.Hour},
		{name: "an epoch", after: "1796040000", want: none},
		{name: "an epoch in milliseconds", ms: "1796040000000", want: none},
		{name: "wraps int64 of nanoseconds", after: "9223372037", want: none},
		{name: "wraps twice", after: "18446744074", want: none},
		{name: "twenty digits", after: "99999999999999999999", want: none},
		{name: "negative", after: "-5", want: none},
		{name: "negative zero", after: "-0", want: none},
		{name: "overflow", after: "1e309", want: none},
		{name: "not a number", after: "NaN", want: none},
		{name: "infinite", after: "Infinity", want: none},
		{name: "a list", after: "1, 2", want: none},
		{name: "two points", after: "1.2.3", want: none},
		{name: "body, first value", body: []string{"60", "5"}, want: time.Minute},
		{name: "body, second value", body: []string{"", "5"}, want: 5 * time.Second},
		{name: "body, a string", body: []string{`"2.5"`}, want: 2500 * time.Millisecond},
		{name: "body, null", body: []string{"null"}, want: none},
		{name: "body after a useless header", after: "later", body: []string{"4"}, want: 4 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := http.Header{}
			for name, v := range map[string]string{"Retry-After-Ms": tc.ms, "Retry-After": tc.after, "Date": tc.date} {
				if v != "" {
					h.Set(name, v)
				}
			}
			got, ok := ServerWait(h, now, tc.body...)
			if !ok {
				got = none
			}
			if got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func FuzzServerWait(f *testing.F) {
	for _, s := range []string{
		"9223372037", "18446744074", "1e309", "NaN", "-0", "1, 2", "12345678901234567890", "", "0", "1.5", ".", "+3",
		"Fri, 31 Dec 9999 23:59:59 GMT", "Mon Nov 30 12:00:10 2026", "0x1p62", "\x00", `"7"`,
	} {
		f.Add(s, s, s, s)
	}
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, ms, after, date, body string) {
		h := http.Header{"Retry-After-Ms": {ms}, "Retry-After": {after}, "Date": {date}}
		d, ok := ServerWait(h, now, body)
		if d < 0 || d > 24*time.Hour {
			t.Fatalf("wait %v is not in [0, 24h]", d)
		}
		if !ok && d != 0 {
			t.Fatalf("no wait, and yet %v", d)
		}
	})
}
