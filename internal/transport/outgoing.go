package transport

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
)

// sending is what one try owns: the transport may still be writing the last
// one's body and headers when its timeout has come.
type sending struct {
	body   bytes.Reader
	number [1]string
}

// outgoing is the request of one try: the call's headers and body, the
// client's headers, and the number of the try.
func (r *run) outgoing(ctx context.Context, redirected *http.Request) *http.Request {
	s := &sending{number: [1]string{strconv.Itoa(r.tries)}}
	out := redirected.WithContext(ctx)
	out.Header = make(http.Header, len(r.call.Header)+len(r.c.header)+1)
	// The values are shared, with no room to append in place.
	for name, values := range r.c.header {
		out.Header[name] = values[:len(values):len(values)]
	}
	for name, values := range r.call.Header {
		out.Header[name] = values[:len(values):len(values)]
	}
	out.Header["Memwrite-Try"] = s.number[:]
	if cookies := redirected.Header["Cookie"]; len(cookies) > 0 { // of the client's jar
		out.Header["Cookie"] = cookies
	}
	if len(r.call.Body) > 0 {
		s.body.Reset(r.call.Body)
		// net/http writes a body that it knows to be in memory together with
		// the header.
		out.Body, out.GetBody, out.ContentLength = io.NopCloser(&s.body), r.getBody, int64(len(r.call.Body))
	}
	return out
}

// getBody is for net/http, which sends a request again by itself when a
// kept-alive connection turns out to be dead before anything was written.
func (r *run) getBody() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(r.call.Body)), nil
}
