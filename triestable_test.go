package memwrite_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
)

// The whole table: status by body by hint, over sockets of both kinds. What
// counts is how often the server was asked, and how the call ended.
func TestEveryStatusBodyAndHint(t *testing.T) {
	t.Parallel()
	const most = 3
	bodies := map[string]string{"JSON": `{"detail":"words"}`, "HTML": "<html>no</html>", "empty": "", "truncated": `{"detail":"wo`}
	hints := map[string]http.Header{
		"none": {}, "0": {"Retry-After": {"0"}}, "1 ms": {"Retry-After-Ms": {"1"}}, "nonsense": {"Retry-After": {"soon"}},
		"past": {"Retry-After": {"Sun, 06 Nov 1994 08:49:37 GMT"}}, "an hour": {"Retry-After": {"3600"}},
	}
	if testing.Short() {
		delete(hints, "0")
		delete(hints, "1 ms")
		delete(hints, "past")
	}
	for _, row := range []struct {
		status int
		tries  int // of a whole body, without a hint
		kind   memwrite.Kind
	}{
		{200, most, memwrite.KindUnknownOutcome}, {201, most, memwrite.KindUnknownOutcome}, {204, most, memwrite.KindUnknownOutcome},
		{300, 1, memwrite.KindRedirect}, {301, 1, memwrite.KindRedirect}, {304, 1, memwrite.KindRedirect}, {307, 1, memwrite.KindRedirect},
		{400, 1, memwrite.KindRefused}, {401, 1, memwrite.KindUnauthorized}, {402, 1, memwrite.KindInsufficientCredits},
		{403, 1, memwrite.KindForbidden}, {404, 1, memwrite.KindNotFound}, {405, 1, memwrite.KindUnsupported},
		{408, most, memwrite.KindServer}, {409, 1, memwrite.KindConflict}, {413, 1, memwrite.KindTooLarge}, {418, 1, memwrite.KindRefused},
		{422, 1, memwrite.KindRefused}, {425, most, memwrite.KindServer}, {429, most, memwrite.KindRateLimited},
		{500, most, memwrite.KindServer}, {501, 1, memwrite.KindUnsupported}, {502, most, memwrite.KindUnknownOutcome},
		{503, most, memwrite.KindServer}, {504, most, memwrite.KindUnknownOutcome}, {505, 1, memwrite.KindUnsupported},
		{507, most, memwrite.KindServer}, {520, most, memwrite.KindUnknownOutcome}, {529, most, memwrite.KindUnknownOutcome}, {999, most, memwrite.KindUnknownOutcome},
	} {
		for kindOfBody, body := range bodies {
			for hint, header := range hints {
				t.Run(fmt.Sprintf("%d %s hint %s", row.status, kindOfBody, hint), func(t *testing.T) {
					t.Parallel()
					bothWays(t, func(t *testing.T, opt memwrite.Option) {
						srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
							w.Header().Set("X-Request-ID", "r-1")
							for name, values := range header {
								w.Header()[name] = values
							}
							if kindOfBody == "truncated" && row.status != 204 && row.status != 304 {
								w.Header().Set("Content-Length", "99")
							}
							w.WriteHeader(row.status)
							io.WriteString(w, body)
						})
						p := quick()
						p.MaxTries = most
						began := time.Now()
						res, err := srv.client(t, opt, memwrite.WithRetryPolicy(p)).Add(t.Context(), theNote())
						want := row.tries
						if hint == "an hour" { // more than a call may wait
							want = 1
						}
						if got := len(srv.requests()); got != want {
							t.Errorf("%d tries, want %d: %v", got, want, err)
						}
						var e *memwrite.Error
						if !errors.As(err, &e) || res != nil {
							t.Fatalf("%v, %v", res, err)
						}
						kind := row.kind
						if kindOfBody == "JSON" && (row.status == 400 || row.status == 422) { // the service's own word
							kind = memwrite.KindInvalidInput
						}
						if e.Kind != kind || e.Status != row.status || e.RequestID != "r-1" || e.Tries != want || e.Identity != "note-0001" {
							t.Errorf("kind %v status %d request %q tries %d identity %q", e.Kind, e.Status, e.RequestID, e.Tries, e.Identity)
						}
						if hint == "an hour" && e.RetryAfter != time.Hour {
							t.Errorf("the hint is %v", e.RetryAfter)
						}
						if strings.Contains(err.Error(), "invalid character") || strings.Contains(err.Error(), srv.URL+"/memory") && e.Target == "" {
							t.Error(err)
						}
						if time.Since(began) > 5*time.Minute {
							t.Errorf("took %v", time.Since(began))
						}
					})
				})
			}
		}
	}
}
