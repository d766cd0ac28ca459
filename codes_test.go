package memwrite_test

import (
	"errors"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	memwrite "github.com/memwrite/memwrite-go"
)

// codeRow is one row of docs/errors.md.
type codeRow struct {
	service, code, body, sentinel, verdict string
	status                                 int
	again                                  bool
}

// codeRows reads the tables of the page.
func codeRows(t *testing.T) []codeRow {
	t.Helper()
	page, err := os.ReadFile("docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	var out []codeRow
	service := ""
	for _, line := range strings.Split(string(page), "\n") {
		if name, ok := strings.CutPrefix(line, "## "); ok {
			service = name
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		status, err := strconv.Atoi(cells[0])
		if err != nil {
			continue
		}
		r := codeRow{service: service, status: status, code: strings.Trim(cells[1], "`")}
		rest := cells[2:]
		if service == "MemorySync" {
			r.body, rest = rest[0], rest[1:]
		}
		if len(rest) != 4 {
			t.Fatalf("a row of %d cells: %s", len(cells), line)
		}
		r.sentinel, r.again, r.verdict = rest[0], rest[1] == "yes", rest[2]
		out = append(out, r)
	}
	return out
}

// What the two services are known to answer, by status. The page has to name
// each, and nothing of the page may be missing here.
var knownCodes = map[string]string{
	"FishMem": `400 INVALID_REQUEST INVALID_BODY INVALID_QUERY SCOPE_REQUIRED INVALID_CURSOR INVALID_FILTER
		IDEMPOTENCY_KEY_REQUIRED INVALID_IDEMPOTENCY_KEY INVALID_SNAPSHOT INVALID_UTF8 NO_PROJECT
		401 INVALID_API_KEY API_KEY_EXPIRED 402 INSUFFICIENT_CREDITS 403 INSUFFICIENT_PERMISSION
		404 MEMORY_NOT_FOUND EVENT_NOT_FOUND OPERATION_NOT_FOUND OPERATION_NOT_RETRYABLE SCOPE_ENTITY_NOT_FOUND
		DOCUMENT_NOT_FOUND DOCUMENT_UPLOAD_NOT_FOUND NOT_FOUND 405 METHOD_NOT_ALLOWED
		409 IDEMPOTENCY_CONFLICT IDEMPOTENCY_INCOMPLETE USAGE_RESERVATION_IN_PROGRESS USAGE_CHARGE_CONFLICT VERSION_CONFLICT
		DOCUMENT_UPLOAD_INCOMPLETE DOCUMENT_UPLOAD_IMMUTABLE DOCUMENT_UPLOAD_SIZE_MISMATCH DOCUMENT_UPLOAD_CHECKSUM_MISMATCH
		SOURCE_ASSET_BUSY SOURCE_ASSET_READY
		413 DELETE_ALL_TOO_LARGE DOCUMENT_TOO_LARGE DOCUMENT_UPLOAD_TOO_LARGE EXTRACTED_DOCUMENT_TOO_LARGE
		DOCUMENT_PAGE_LIMIT_EXCEEDED 415 UNSUPPORTED_DOCUMENT_MEDIA_TYPE 429 RATE_LIMITED 500 MEMORY_ENGINE_ERROR`,
	"MemorySync": `400 MISSING_END_USER_ID INVALID_TENANT_ID_FORMAT INVALID_PROJECT_ID TENANT_CONTEXT_REQUIRED ValidationError
		401 API_key_missing Invalid_API_key 403 API_key_revoked Insufficient_scope._Missing:_memory:add
		Tenant_does_not_belong_to_this_key Project_does_not_belong_to_this_key 404 Memory_not_found Not_Found
		405 Method_Not_Allowed 409 any 413 metadata_is_too_large 422 VALIDATION_ERROR - 429 RATE_LIMIT_EXCEEDED limit_exceeded per_ip
		500 EXTRACTION_FAILED INTERNAL_ERROR 502 - 503 the_extraction_is_still_running;_send_the_same_request_again 504 -`,
}

func TestThePageOfErrorsNamesEveryCode(t *testing.T) {
	t.Parallel()
	want := map[string]bool{}
	for service, list := range knownCodes {
		status := ""
		for _, word := range strings.Fields(list) {
			if _, err := strconv.Atoi(word); err == nil {
				status = word
				continue
			}
			want[service+" "+status+" "+word] = true
		}
	}
	got, codes := map[string]bool{}, map[string]bool{}
	for _, r := range codeRows(t) {
		codes[r.code] = true
		name := r.service + " " + strconv.Itoa(r.status) + " " + strings.ReplaceAll(r.code, " ", "_")
		if got[name] {
			t.Errorf("%s is there twice", name)
		}
		got[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !got[name] {
			t.Errorf("docs/errors.md lacks %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if !want[name] {
			t.Errorf("docs/errors.md has %s, which no list of codes knows", name)
		}
	}
	// The contract names no code that the page does not.
	contract, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	others := []string{"NO_MEMORY", "ENGINE_NOT_CONFIGURED", "ENGINE_UNAVAILABLE", "QUEUE_DELIVERY_EXHAUSTED"} // no answers of their own
	for _, code := range regexp.MustCompile(`\b[A-Z]{2,}(_[A-Z0-9]+)+\b`).FindAllString(string(contract), -1) {
		if !codes[code] && !slices.Contains(others, code) {
			t.Errorf("openapi.yaml names %s, and docs/errors.md does not", code)
		}
	}
}

var sentinels = map[string]error{
	"ErrInvalidInput": memwrite.ErrInvalidInput, "ErrUnauthorized": memwrite.ErrUnauthorized, "ErrForbidden": memwrite.ErrForbidden,
	"ErrNotFound": memwrite.ErrNotFound, "ErrConflict": memwrite.ErrConflict, "ErrInProgress": memwrite.ErrInProgress,
	"ErrRateLimited": memwrite.ErrRateLimited, "ErrQuotaExceeded": memwrite.ErrQuotaExceeded, "ErrTooLarge": memwrite.ErrTooLarge,
	"ErrInsufficientCredits": memwrite.ErrInsufficientCredits, "ErrServer": memwrite.ErrServer,
	"ErrUnknownOutcome": memwrite.ErrUnknownOutcome, "ErrUnsupported": memwrite.ErrUnsupported, "ErrRefused": memwrite.ErrRefused,
}

var actions = map[string]memwrite.Action{"RetryAfter": memwrite.RetryAfter, "Hold": memwrite.Hold, "DeadLetter": memwrite.DeadLetter}

// wireBody is the row as it comes over the wire, with what the client has to
// find in it.
func (r codeRow) wireBody() (body, code, message, requestID, details string) {
	const id = "from-header"
	switch r.body {
	case "":
		return `{"code":"` + r.code + `","message":"why","request_id":"r-1","details":{"n":1}}`, r.code, "why", "r-1", `{"n":1}`
	case "A":
		return `{"error":{"code":"` + r.code + `","message":"why","details":[{"field":"text"}]},"request_id":"r-1"}`, r.code, "why", "r-1", `[{"field":"text"}]`
	case "B":
		return `{"error":"` + r.code + `","message":"why","request_id":"r-1"}`, r.code, "why", "r-1", ""
	case "C":
		return `{"detail":"` + r.code + `"}`, "", r.code, id, ""
	case "D":
		d := `{"error":"` + r.code + `","message":"why"}`
		return `{"detail":` + d + `}`, r.code, "why", id, d
	case "E":
		return `{"error":{"code":"` + r.code + `","message":"why","retry_after":0}}`, r.code, "why", id, ""
	case "F":
		return `{"reason":"` + r.code + `","retry_after_seconds":0}`, r.code, "", id, ""
	case "G":
		d := `[{"loc":["body","text"],"msg":"field required","type":"missing"}]`
		return `{"detail":` + d + `}`, "", "", id, d
	}
	return "<html>gateway</html>", "", "", id, ""
}

// Every row of both tables over a real connection: status, code, message,
// details, request id, identity, sentinel, tries and verdict.
func TestEveryErrorCodeBecomesWhatThePageSays(t *testing.T) {
	t.Parallel()
	rows := codeRows(t)
	if len(rows) < 60 {
		t.Fatalf("only %d rows were read", len(rows))
	}
	for _, row := range rows {
		t.Run(row.service+" "+strconv.Itoa(row.status)+" "+row.code, func(t *testing.T) {
			t.Parallel()
			body, code, message, requestID, details := row.wireBody()
			srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Request-ID", "from-header")
				respond(w, row.status, body)
			})
			c := srv.client(t)
			identity := "note-0001"
			var err error
			if row.service == "FishMem" {
				identity = "note-0101"
				_, err = c.AddAsync(t.Context(), theInferred())
			} else {
				_, err = c.Add(t.Context(), theNote())
			}
			var e *memwrite.Error
			if !errors.As(err, &e) {
				t.Fatalf("%v", err)
			}
			if e.Status != row.status || e.Code != code || e.Message != message || e.RequestID != requestID || e.Identity != identity {
				t.Errorf("status %d code %q message %q request %q identity %q", e.Status, e.Code, e.Message, e.RequestID, e.Identity)
			}
			if string(e.Details) != details {
				t.Errorf("details %s, want %s", e.Details, details)
			}
			for name, sentinel := range sentinels {
				if errors.Is(err, sentinel) != (name == row.sentinel) {
					t.Errorf("errors.Is(err, %s) is %v, the page says %s", name, errors.Is(err, sentinel), row.sentinel)
				}
			}
			want := 1
			if row.again {
				want = 5
			}
			if n := len(srv.requests()); n != want || e.Tries != want || e.Retryable() != row.again {
				t.Errorf("%d requests, %d tries, retryable %v", n, e.Tries, e.Retryable())
			}
			if action, known := actions[row.verdict]; !known || memwrite.VerdictOf(err).Action != action {
				t.Errorf("verdict %v, the page says %s", memwrite.VerdictOf(err), row.verdict)
			}
		})
	}
}
