package transport

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/memwrite/memwrite-go/internal/sched"
)

const (
	drainLimit = 256 << 10   // bytes read and dropped to keep a connection
	drainTime  = time.Second // and how long that may take
)

// Answer is one HTTP answer, read to its end or to its limit.
type Answer struct {
	Status    int
	Header    http.Header
	Body      []byte
	Truncated bool      // the body ended before it was whole, or was not what its encoding says
	TooLarge  bool      // the body goes on behind Body
	Redirect  string    // where a redirect that was not followed points, without query
	URL       string    // what answered, without query; of 300 and above
	Received  time.Time // on the client's clock, when the headers were there
}

// reader reads the body of one try.
type reader struct {
	sched sched.Scheduler
	limit int64 // for an answer below 300
	error int64 // for any other
}

// read takes the body off the wire while the try's timeout still runs, so that
// a body cut short is a try that failed and not a surprise for whoever decodes
// it. It always closes the body. cancel ends the try's context; it is called
// only when dropping the rest takes too long.
func (rd reader) read(ctx context.Context, cancel context.CancelFunc, resp *http.Response) (*Answer, error) {
	a := &Answer{
		Status: resp.StatusCode, Header: resp.Header, Received: rd.sched.Now(),
		Redirect: target(resp),
	}
	if resp.Request != nil && resp.StatusCode >= 300 {
		a.URL = withoutQuery(resp.Request.URL)
	}
	defer resp.Body.Close()
	limit := rd.limit
	if resp.StatusCode >= 300 {
		limit = rd.error
	}

	var body io.Reader = resp.Body
	if !resp.Uncompressed && strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
		// net/http unpacks what it asked for itself; this is a server that
		// compresses unasked. The limit counts unpacked bytes, so a small bomb
		// stays small.
		z, err := gzip.NewReader(body)
		switch {
		case errors.Is(err, io.EOF): // no body at all, as a 204 or an empty 502
			return a, nil
		case err != nil:
			a.Truncated = true
			return a, err
		}
		body = z
	}

	var err error
	a.Body, err = readUpTo(body, limit, resp.ContentLength)
	if err != nil {
		a.Truncated = true
		return a, err
	}
	if int64(len(a.Body)) > limit {
		a.Body, a.TooLarge = a.Body[:limit], true
	}
	if a.TooLarge {
		rd.drain(ctx, cancel, resp.Body)
	}
	return a, nil
}

// readUpTo reads at most limit+1 bytes: one more than allowed is how it knows.
func readUpTo(r io.Reader, limit, length int64) ([]byte, error) {
	size := int64(bytes.MinRead)
	if length > 0 {
		// One byte of room for the read that finds the end. A length that lies
		// upwards costs at most 64 KiB.
		size = min(length, limit, 64<<10) + 1
	}
	buf := make([]byte, 0, size)
	for int64(len(buf)) <= limit {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		room := min(int64(cap(buf)), limit+1)
		n, err := r.Read(buf[len(buf):room])
		buf = buf[:len(buf)+n]
		if errors.Is(err, io.EOF) {
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
	}
	return buf, nil
}

// drain drops what is left of a body that was too large, so that the
// connection can serve another try. A body that is longer than 256 KiB or
// slower than a second is not worth it: closing the body then closes the
// connection.
func (rd reader) drain(ctx context.Context, cancel context.CancelFunc, body io.Reader) {
	done := make(chan struct{})
	defer close(done)
	rd.sched.Go(func() {
		if errors.Is(rd.sched.Wait(ctx, drainTime, done), sched.ErrElapsed) {
			cancel()
		}
	})
	_, _ = io.Copy(io.Discard, io.LimitReader(body, drainLimit))
}
