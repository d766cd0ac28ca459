package sim

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/memwrite/memwrite-go/internal/sched"
)

// wire is the way of one client process to the nodes: an http.RoundTripper on
// which requests and answers get lost, doubled, late, cut and refused. Each
// request is a runnable of its own, as on a server.
type wire struct {
	w      *world
	client string
	mute   map[string]time.Time // by service: a 429 said so
}

var errReset = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}

func (t *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	w := t.w
	var body []byte
	if req.Body != nil {
		var err error
		body, err = io.ReadAll(req.Body)
		_ = req.Body.Close()
		if err != nil {
			return nil, err
		}
	}
	t.heard(req)
	w.calls++
	w.spend(w.script.World.StoreTime)
	f := w.strike(atRequest)
	if f != nil {
		w.fired(f, req.URL.Path)
	}
	if f != nil && f.Kind == AnswerRefused {
		w.outage = append(w.outage, outage{service: serviceOf(req), until: w.sched.now.Add(f.Span / 4), draw: f.Draw})
	}
	if resp := t.refused(req); resp != nil {
		return resp, nil
	}
	n := w.alive(w.sched.rng.Uint64())
	switch {
	case n == nil:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case f == nil:
	case f.Kind == RequestLost:
		w.sleep(f.Span / 8)
		return nil, errReset
	case f.Kind == RequestLate:
		w.sched.goAs("network", func() {
			w.sleep(f.Span)
			if n := w.alive(f.Draw); n != nil {
				t.exchange(w.ctx, n, req, body)
			}
		})
		return nil, errReset
	case f.Kind == RequestTwice:
		w.sched.goAs("network", func() { t.exchange(w.ctx, n, req, body) })
	}

	var got *recorder
	done := make(chan struct{})
	w.sched.goAs("request", func() {
		defer close(done)
		got = t.exchange(req.Context(), n, req, body)
	})
	if err := w.sched.Wait(req.Context(), sched.Forever, done); err != nil {
		return nil, err
	}
	if got == nil {
		return nil, errReset
	}
	if f != nil {
		switch f.Kind {
		case AnswerLost:
			return nil, errReset
		case AnswerLate:
			if err := w.sched.Wait(req.Context(), f.Span, w.calmed); err != nil && !errors.Is(err, sched.ErrElapsed) {
				return nil, err
			}
		case AnswerCut:
			return got.response(req, int(f.Draw%uint64(1+got.body.Len()))), nil
		}
	}
	return got.response(req, -1), nil
}

// exchange lets a node answer; nil when it died meanwhile or the caller is gone.
func (t *wire) exchange(ctx context.Context, n *node, req *http.Request, body []byte) *recorder {
	if n.dead {
		return nil
	}
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, nodeKey{}, n))
	defer cancel(nil)
	t.w.births++
	id := t.w.births
	n.calls[id] = cancel
	defer delete(n.calls, id)
	in := req.WithContext(ctx)
	in.Body = io.NopCloser(bytes.NewReader(body))
	in.RequestURI = req.URL.RequestURI()
	in.RemoteAddr = "127.0.0.1:1"
	out := &recorder{header: http.Header{}}
	t.w.worker.service.ServeHTTP(out, in)
	if n.dead || ctx.Err() != nil {
		return nil
	}
	t.w.note("answer", req.Method+" "+req.URL.Path, "", int64(out.status))
	return out
}

// heard: a client that was told to wait keeps quiet (E5).
func (t *wire) heard(req *http.Request) {
	if early := t.mute[serviceOf(req)].Sub(t.w.sched.now); early > 0 {
		t.w.audit.fail("E5", "%s sends a request %v before the time a 429 named", t.client, early)
	}
}

// outage is a time in which a service refuses every request of every client.
type outage struct {
	service string
	until   time.Time
	draw    uint64
}

// hints are the waits a server may ask for, and what they mean: below 0 is
// nonsense, which asks for nothing.
var hints = []struct {
	header string
	means  time.Duration
}{
	{"", -1}, {"1", time.Second}, {"2", 2 * time.Second}, {"7", 7 * time.Second}, {"0.5", 500 * time.Millisecond}, {"60", time.Minute},
	{"3600", time.Hour}, {"9223372037", -1}, {"18446744074", -1}, {"-5", -1}, {"NaN", -1}, {"1e309", -1}, {"99999999999999999999", -1},
}

const maxServerWait = 90 * time.Second // the client's default

func (t *wire) refused(req *http.Request) *http.Response {
	w := t.w
	for _, o := range w.outage {
		if w.calm || o.service != serviceOf(req) || !w.sched.now.Before(o.until) {
			continue
		}
		hint := hints[o.draw>>8%uint64(len(hints))]
		out := &recorder{header: http.Header{"Content-Type": {"application/json"}}}
		switch o.draw % 6 {
		case 0, 1:
			out.status = http.StatusTooManyRequests
			out.body.WriteString(`{"code":"RATE_LIMITED","message":"slow down"}`)
		case 2:
			out.status = http.StatusServiceUnavailable
			out.body.WriteString(`{"code":"AWAY","message":"away"}`)
		case 3:
			out.status = http.StatusBadGateway
			out.body.WriteString("<html>bad gateway</html>")
		case 4:
			out.status = http.StatusInternalServerError
		default:
			out.status = http.StatusConflict
			out.body.WriteString(`{"code":"IDEMPOTENCY_INCOMPLETE","message":"still running"}`)
		}
		if hint.header != "" {
			out.header.Set("Retry-After", hint.header)
		}
		if out.status == http.StatusTooManyRequests && hint.means > 0 {
			t.mute[o.service] = w.sched.now.Add(min(hint.means, maxServerWait))
		}
		w.note("refused", o.service, hint.header, int64(out.status))
		return out.response(req, -1)
	}
	return nil
}

func serviceOf(req *http.Request) string {
	if strings.HasPrefix(req.URL.Path, "/memory/") || strings.HasPrefix(req.URL.Path, "/v1/memory/") {
		return "memorysync"
	}
	return "fishmem"
}

// recorder holds an answer until it is known what becomes of it.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

func (r *recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(p)
}

// response is the answer as the client gets it, with cut >= 0 only so much of it.
func (r *recorder) response(req *http.Request, cut int) *http.Response {
	length := int64(r.body.Len())
	var body io.Reader = bytes.NewReader(r.body.Bytes())
	if cut >= 0 {
		body = io.MultiReader(bytes.NewReader(r.body.Bytes()[:cut]), broken{})
	}
	return &http.Response{
		Status: strconv.Itoa(r.status), StatusCode: r.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: r.header, Body: io.NopCloser(body), ContentLength: length, Request: req,
	}
}

// broken is the end of a body that ended too early.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
