package memwrite_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	memwrite "github.com/memwrite/memwrite-go"
)

func TestS47_AnyEnvelopeIsOurError(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"error":"x"}`, `"x"`, `[]`, `null`, ``, `{"err`, `{"error":{"code":"C","message":"m"}}`, `{"error":null}`, `12`} {
		srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Request-ID", "r-1")
			respond(w, 400, body)
		})
		_, err := srv.client(t).Add(t.Context(), theNote())
		var e *memwrite.Error
		if !errors.As(err, &e) || e.Status != 400 || e.RequestID != "r-1" {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestS48_HTMLIsNeverASuccess(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 403, 502} {
		bothWays(t, func(t *testing.T, opt memwrite.Option) {
			srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				w.WriteHeader(status)
				io.WriteString(w, "<html>"+strings.Repeat("x", 4000))
			})
			_, err := srv.client(t, opt).Add(t.Context(), theNote())
			var e *memwrite.Error
			if !errors.As(err, &e) || e.Status != status || len(e.Snippet) > 1024 || strings.Contains(err.Error(), "invalid character") {
				t.Error(err)
			}
		})
	}
}

func TestS50_ATruncatedSuccessIsTriedAgain(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, opt memwrite.Option) {
		srv := listen(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			if n == 1 {
				respond(w, 201, `{"a":1`)
				return
			}
			respond(w, 200, `{"status":"skipped","reason":"already_ingested","memory_ids":[1],"client_ref":"note-0001"}`)
		})
		res, err := srv.client(t, opt).Add(t.Context(), theNote())
		if err != nil || res.Tries != 2 || res.Outcome != memwrite.AlreadyIngested {
			t.Error(res, err)
		}
	})
}

func TestS52_NoContentWithAContentType(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(204)
	})
	_, err := srv.client(t).Add(t.Context(), theNote())
	var e *memwrite.Error
	if !errors.As(err, &e) || e.Status != 204 || !errors.Is(err, memwrite.ErrUnknownOutcome) {
		t.Error(err)
	}
}

func TestS54_ARedirectedWriteIsAnErrorAndNeverAGET(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s arrived with key %q", r.Method, r.Header.Get("X-API-Key"))
	}))
	t.Cleanup(other.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		srv := listen(t, func(_ int, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+"/memory/add", status)
		})
		_, err := srv.client(t).Add(t.Context(), theNote())
		var e *memwrite.Error
		if !errors.Is(err, memwrite.ErrRedirect) || !errors.As(err, &e) || e.Target != other.URL+"/memory/add" || len(srv.requests()) != 1 {
			t.Errorf("%d: %v", status, err)
		}
	}
}

func TestS57_ErrorsSpeakInFieldsAndMethods(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) { respond(w, 503, "") })
	_, err := srv.client(t).Add(t.Context(), theNote())
	var generic interface {
		StatusCode() int
		Retryable() bool
		Temporary() bool
	}
	if !errors.As(err, &generic) || generic.StatusCode() != 503 || !generic.Retryable() || !generic.Temporary() {
		t.Error(err)
	}
}
