package mockserver_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/memwrite/memwrite-go/mockserver"
)

// Two spellings that would be stored as one text are refused, or a key would
// answer another command as its replay, and a name would be somebody else's.
func TestWhatCannotBeKeptAsItCameIsRefused(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	for _, half := range []string{`\ud800`, `\udfff`, `\ud800x`, `\ud83d\u0041`, `\ud83d\ud83d\ude00`, `a\\\ud800`} {
		c.want(c.do("POST", "/v1/memories", `{"content":"`+half+` hi","user_id":"sam","infer":false}`), 400, "INVALID_REQUEST")
		c.want(c.do("POST", "/v1/memories", `{"content":"hi","user_id":"`+half+`","infer":false}`), 400, "INVALID_REQUEST")
		c.want(c.do("POST", "/v1/memories", `{"messages":[{"role":"user","content":"`+half+`"}],"user_id":"sam","infer":false}`), 400, "INVALID_REQUEST")
		c.want(c.do("POST", "/memory/add", `{"text":"I like tea a lot `+half+`"}`), 422, "VALIDATION_ERROR")
		c.want(c.do("POST", "/memory/add", `{"text":"I like tea a lot","client_ref":"`+half+`"}`), 422, "VALIDATION_ERROR")
		c.want(c.do("POST", "/memory/add", `{"text":"I like tea a lot","tags":["`+half+`"]}`), 422, "VALIDATION_ERROR")
		c.want(c.do("POST", "/v1/memory/add_turn", `{"tenant_id":"default","user_id":"sam","text":"I like tea `+half+`"}`), 422, "")
	}
	c.want(c.do("POST", "/memory/add", note, "X-End-User-ID", "a\xff"), 422, "VALIDATION_ERROR")
	c.want(c.do("POST", "/v1/memories", infer, "Idempotency-Key", "k\xff"), 400, "INVALID_IDEMPOTENCY_KEY")
	c.want(c.do("GET", "/v1/memories?user_id=a%FF", ""), 400, "INVALID_REQUEST")
	if n := len(srv.Tasks()); n != 0 {
		t.Errorf("%d of them were accepted", n)
	}
	// And what only looks like it is not.
	for _, whole := range []string{`\ud83d\ude00`, `\\ud800`, `\ufffd`, "\ufffd", `\u00e9`} {
		got := c.want(c.do("POST", "/v1/memories", `{"content":"`+whole+`","user_id":"sam","infer":false}`), 200, "")
		if strings.Contains(whole, "83d") && !strings.Contains(string(got.body), "😀") {
			t.Errorf("%s became %s", whole, got.body)
		}
	}
}

// A path of the one service is never answered in the name of the other, also
// when this server does not have it: a good key would be called a bad one.
func TestAPathThatIsNotServedIsStillItsServices(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := newCaller(t, srv)
	for _, path := range []string{"/v1/entities", "/v1/documents/d", "/v1/document-uploads", "/v1/exports", "/v1/imports", "/v1/beliefs", "/v1/profile", "/v1/openapi.json"} {
		c.want(c.do("GET", path, "", "Authorization", "Bearer "+srv.FishMemKey, "X-API-Key", ""), 404, "NOT_FOUND")
	}
	c.want(c.do("GET", "/memory/export/x", ""), 404, "Not Found")
}

// The control API off loopback: with its own token, and with nothing else.
func TestControlFromElsewhereNeedsItsOwnToken(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	for name, tc := range map[string]struct {
		remote, header, value string
		status                int
	}{
		"this machine":            {"127.0.0.1:9", "", "", 200},
		"this machine, version 6": {"[::1]:9", "", "", 200},
		"another machine":         {"192.0.2.1:9", "", "", 403},
		"a key of the service":    {"192.0.2.1:9", "X-Control-Token", srv.MemorySyncKey, 403},
		"a key as it is sent":     {"192.0.2.1:9", "Authorization", "Bearer " + srv.FishMemKey, 403},
		"said to be this machine": {"192.0.2.1:9", "X-Forwarded-For", "127.0.0.1", 403},
		"the token":               {"192.0.2.1:9", "X-Control-Token", srv.ControlToken, 200},
		"no address at all":       {"@", "", "", 403},
	} {
		r := httptest.NewRequest("GET", srv.URL+"/_control/clock", nil)
		r.RemoteAddr = tc.remote
		if tc.header != "" {
			r.Header.Set(tc.header, tc.value)
		}
		w := httptest.NewRecorder()
		srv.Serve(w, r)
		if w.Code != tc.status {
			t.Errorf("%s: %d, want %d", name, w.Code, tc.status)
		}
	}
}
