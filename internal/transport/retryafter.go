package transport

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxHint is where a server's wait saturates. Nobody waits a day inside a
// call; the number is only told.
const maxHint = 24 * time.Hour

// ServerWait is how long the server asks to wait before the next try, from the
// first of these that makes sense: the header retry-after-ms, the header
// Retry-After as seconds or as a date, then fromBody in order, each the raw
// JSON of a number or string of seconds (the caller gives error.retry_after
// and retry_after_seconds). Of a header that is there more than once the first
// that makes sense counts.
//
// A date is measured against the answer's own Date header, so that a wrong
// clock on either side does not matter, and against now without one. A date in
// the past asks for no wait at all.
//
// For every input 0 <= wait <= 24 h. What is negative, not a number, or so
// large that it can only be a point in time mistaken for a duration is no wait:
// ok is false.
func ServerWait(h http.Header, now time.Time, fromBody ...string) (wait time.Duration, ok bool) {
	for _, v := range h["Retry-After-Ms"] {
		if d, ok := parseNumber(v, time.Millisecond); ok {
			return d, true
		}
	}
	for _, v := range h["Retry-After"] {
		if d, ok := parseNumber(v, time.Second); ok {
			return d, true
		}
		if d, ok := parseDate(v, h.Get("Date"), now); ok {
			return d, true
		}
	}
	for _, v := range fromBody {
		if d, ok := parseNumber(strings.Trim(v, `"`), time.Second); ok {
			return d, true
		}
	}
	return 0, false
}

// epoch is where a number of seconds stops being a duration: ten years. Unix
// times of this century are above it in every unit.
const epoch = 10 * 365 * 24 * 3600

// parseNumber reads a decimal number of units. It accepts no sign, no
// exponent, no hexadecimal and no words: ParseFloat alone would take 1e3, 0x1p4
// and Infinity.
func parseNumber(s string, unit time.Duration) (time.Duration, bool) {
	s = strings.TrimSpace(s)
	if s == "" || len(s) > 32 || strings.Trim(s, "0123456789.") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(n) || n < 0 {
		return 0, false
	}
	seconds := n * unit.Seconds()
	switch {
	case seconds >= epoch:
		return 0, false
	case seconds >= maxHint.Seconds():
		return maxHint, true
	}
	return time.Duration(seconds * float64(time.Second)), true
}

// parseDate reads the three forms RFC 9110, 5.6.7 obliges a recipient to
// accept: IMF-fixdate, RFC 850 and asctime.
func parseDate(s, date string, now time.Time) (time.Duration, bool) {
	at, err := http.ParseTime(s)
	if err != nil {
		return 0, false
	}
	if sent, err := http.ParseTime(date); err == nil {
		now = sent
	}
	d := at.Sub(now) // saturates, so a year 9999 cannot wrap around
	return min(max(d, 0), maxHint), true
}
