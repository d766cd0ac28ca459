package transport

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/memwrite/memwrite-go/internal/sched"
)

// Whatever comes off the wire, compressed or not, under a length that lies or
// not: what is kept is bounded, and a body that is not whole is known as such.
func FuzzAnswerBody(f *testing.F) {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, _ = w.Write(bytes.Repeat([]byte("a"), 5000))
	_ = w.Close()
	f.Add([]byte(`{"a":1}`), 200, int64(7), false)
	f.Add(z.Bytes(), 200, int64(-1), true)
	f.Add(z.Bytes()[:20], 503, int64(1<<40), true)
	f.Add([]byte{}, 204, int64(0), true)
	f.Fuzz(func(t *testing.T, body []byte, status int, length int64, zipped bool) {
		h := http.Header{}
		if zipped {
			h.Set("Content-Encoding", "gzip")
		}
		rd := reader{sched: sched.Real(), limit: 1000, error: 100}
		a, err := rd.read(context.Background(), func() {}, &http.Response{StatusCode: status, Header: h, ContentLength: length, Body: io.NopCloser(bytes.NewReader(body))})
		limit := 1000
		if status >= 300 {
			limit = 100
		}
		if a == nil {
			t.Fatal("no answer")
		}
		if len(a.Body) > limit+1 || (len(a.Body) > limit && !a.TooLarge && !a.Truncated) {
			t.Fatalf("%d bytes are kept, cut %v, too large %v", len(a.Body), a.Truncated, a.TooLarge)
		}
		if (err != nil) != a.Truncated {
			t.Fatalf("error %v, cut %v", err, a.Truncated)
		}
		if !zipped && err == nil && !a.TooLarge && !bytes.Equal(a.Body, body) {
			t.Fatalf("%q was read as %q", body, a.Body)
		}
	})
}
