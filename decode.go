package memwrite

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/memwrite/memwrite-go/internal/transport"
)

const (
	maxMessage = 1000
	maxSnippet = 1000
	maxDetails = 4096
)

// judgement is what one answer means: for the try loop, and for the Error if
// it was the last one.
type judgement struct {
	kind      Kind
	class     transport.Class
	reason    string
	code      string
	message   string
	requestID string
	details   json.RawMessage
	hint      time.Duration
	hasHint   bool
}

// judge reads an answer of either service, of their frameworks, or of a proxy
// before them. It never trusts the Content-Type: what parses as the JSON of a
// success is one, and nothing else.
func judge(a *transport.Answer, now time.Time) judgement {
	var j judgement
	if a.Status >= 200 && a.Status < 300 {
		return judgeSuccess(a, now)
	}
	f := scanBody(a.Body)
	codes := []string{f["code"], f["error.code"], f["error"], f["detail.error"], f["detail.code"], f["reason"]}
	// A number that repeats the status says nothing, and there may be a word behind it.
	j.code = first(slices.DeleteFunc(codes, func(c string) bool { return c == itoa(a.Status) })...)
	j.message = first(f["message"], f["error.message"], f["detail.message"], f["detail"], f["error_description"], f[""])
	if strings.ContainsRune(j.code, ' ') { // a sentence where a code was expected
		if j.message == "" {
			j.message = j.code
		}
		j.code = ""
	}
	j.requestID = requestID(f["request_id"], f["error.request_id"], a.Header)
	j.details = detailsOf(a.Body)
	j.hint, j.hasHint = transport.ServerWait(a.Header, now, f["error.retry_after"], f["retry_after_seconds"], f["detail.retry_after"])
	j.kind, j.class = kindOf(a.Status, j.code)
	if j.kind == KindInvalidInput && !namesFault(f, a.Body) {
		j.kind = KindRefused
	}
	j.reason = reasonOf(a.Status, j.code)
	return j
}

func judgeSuccess(a *transport.Answer, now time.Time) judgement {
	j := judgement{requestID: requestID("", "", a.Header)}
	j.hint, j.hasHint = transport.ServerWait(a.Header, now)
	switch {
	case a.TooLarge:
		j.kind, j.class, j.reason = KindTooLarge, transport.Final, "answer_too_large"
		j.message = "the answer is larger than the limit for answers; the write itself may have landed"
	case a.Truncated, !isJSONDocument(a.Body):
		j.kind, j.class, j.reason = KindUnknownOutcome, transport.NoAnswer, "not_json"
		j.message = "the answer is not the JSON it should be"
		if a.Truncated {
			j.reason, j.message = "truncated", "the answer was cut short"
		}
	case turnFailed(a):
		f := scanBody(a.Body)
		j.kind, j.class, j.reason = KindServer, transport.Server, "turn_failed"
		j.code, j.message = "turn_failed", first(f["processing_error"], "extraction could not run and nothing was saved")
		j.requestID = requestID(f["request_id"], "", a.Header)
	default:
		j.class = transport.Success
	}
	return j
}

// isWhole tells a 2xx that was read to its end.
func isWhole(a *transport.Answer) bool {
	return a.Status >= 200 && a.Status < 300 && !a.Truncated && !a.TooLarge
}

// turnFailed tells the 200 of a turn whose extraction could not run: it saved
// nothing.
func turnFailed(a *transport.Answer) bool {
	return bytes.Contains(a.Body, []byte(`"processing_status"`)) && scanBody(a.Body)["processing_status"] == string(TurnFailed)
}

// kindOf is the table of statuses and codes. What follows from a kind for the
// try loop is beside it.
func kindOf(status int, code string) (Kind, transport.Class) {
	switch {
	case status == 429:
		// Two things under one status: a window, which passes, and the month.
		if code == "limit_exceeded" {
			return KindQuotaExceeded, transport.Final
		}
		return KindRateLimited, transport.Throttled
	case status == 409:
		if code == "IDEMPOTENCY_INCOMPLETE" || code == "USAGE_RESERVATION_IN_PROGRESS" {
			return KindInProgress, transport.InProgress
		}
		return KindConflict, transport.Final
	case status >= 300 && status < 400:
		return KindRedirect, transport.Final
	case status == 401, status == 407:
		return KindUnauthorized, transport.Final
	case status == 402:
		return KindInsufficientCredits, transport.Final
	case status == 403, status == 451:
		return KindForbidden, transport.Final
	case status == 404, status == 410:
		return KindNotFound, transport.Final
	case status == 405, status == 501, status == 505:
		return KindUnsupported, transport.Final
	case status == 413, status == 414, status == 431:
		return KindTooLarge, transport.Final
	case status == 408, status == 425:
		return KindServer, transport.Server
	case status == 400, status == 415, status == 422:
		return KindInvalidInput, transport.Final // if the service says so: see namesFault
	case status >= 400 && status < 500:
		// No status of these services: it says more about what stands between
		// than about the request (421, 426, 499).
		return KindRefused, transport.Final
	case status == 502, status == 504, status >= 520 && status < 530:
		// A gateway speaks for a server that did not: it may have acted.
		return KindUnknownOutcome, transport.NoAnswer
	case status >= 500 && status < 600:
		return KindServer, transport.Server
	}
	return KindUnknownOutcome, transport.NoAnswer
}

// namesFault tells the services' own word on an input, in any of their forms,
// from a proxy's page, an empty body, and a gateway's bare message.
func namesFault(f map[string]string, body []byte) bool {
	if first(f["code"], f["error"], f["error.code"], f["error.message"], f["detail"], f["detail.error"], f["detail.code"], f["detail.message"], f["reason"]) != "" {
		return true
	}
	var top struct {
		Detail json.RawMessage `json:"detail"`
	}
	return json.Unmarshal(body, &top) == nil && len(top.Detail) > 0 && top.Detail[0] == '['
}

func reasonOf(status int, code string) string {
	if code != "" && len(code) <= 64 && strings.Trim(code, codeLetters) == "" {
		return code
	}
	return "http_" + itoa(status)
}

const codeLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."

// scanBody collects the strings and numbers of an error body by path, one
// level deep ("code", "error.code", "detail.message"), and a bare string under
// "". It takes what it can from a body that is cut short, and nothing from one
// that is not JSON.
func scanBody(body []byte) map[string]string {
	found := map[string]string{}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	type frame struct {
		object bool
		key    string
		atKey  bool
	}
	var stack []frame
	for {
		tok, err := dec.Token()
		if err != nil {
			return found
		}
		if d, ok := tok.(json.Delim); ok && (d == '{' || d == '[') {
			if len(stack) >= 64 {
				return found
			}
			stack = append(stack, frame{object: d == '{', atKey: d == '{'})
			continue
		} else if ok {
			stack = stack[:len(stack)-1]
		} else if len(stack) > 0 && stack[len(stack)-1].atKey {
			top := &stack[len(stack)-1]
			top.key, _ = tok.(string)
			top.atKey = false
			continue
		} else if len(stack) <= 2 {
			var path []string
			plain := true
			for _, f := range stack {
				plain = plain && f.object
				path = append(path, f.key)
			}
			if v := text(tok); plain && v != "" {
				if p := strings.Join(path, "."); found[p] == "" {
					found[p] = v
				}
			}
		}
		if len(stack) == 0 {
			return found // anything behind the document is not its business
		}
		if top := &stack[len(stack)-1]; top.object {
			top.atKey = true
		}
	}
}

func text(tok json.Token) string {
	switch v := tok.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return ""
}

// detailsOf finds what a service adds to its message: details, error.details,
// or FastAPI's detail when that is more than a sentence.
func detailsOf(body []byte) json.RawMessage {
	var top struct {
		Details json.RawMessage `json:"details"`
		Error   json.RawMessage `json:"error"`
		Detail  json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(body, &top) != nil {
		return nil
	}
	var inner struct {
		Details json.RawMessage `json:"details"`
	}
	if len(top.Error) > 0 && top.Error[0] == '{' && json.Unmarshal(top.Error, &inner) == nil && len(top.Details) == 0 {
		top.Details = inner.Details
	}
	if len(top.Details) == 0 && len(top.Detail) > 0 && top.Detail[0] != '"' {
		top.Details = top.Detail
	}
	if len(top.Details) > maxDetails || string(top.Details) == "null" {
		return nil
	}
	return top.Details
}

// isJSONDocument tells a whole JSON object or array from a page, a proxy's
// word and a cut-off body.
func isJSONDocument(b []byte) bool {
	t := bytes.TrimLeft(b, " \t\r\n")
	return len(t) > 0 && (t[0] == '{' || t[0] == '[') && json.Valid(t)
}

// requestID prefers the body's, as the services do, and is bounded.
func requestID(body, nested string, h http.Header) string {
	return clip(oneLine(first(body, nested, h.Get("X-Request-Id"))), 200)
}

func first(all ...string) string {
	for _, s := range all {
		if s != "" {
			return s
		}
	}
	return ""
}

// clip cuts a string at n bytes without cutting a character in two.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// oneLine keeps an answer from writing lines of its own into a log.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
}
