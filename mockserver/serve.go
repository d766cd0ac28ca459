package mockserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/memwrite/memwrite-go/internal/inspector"
	"github.com/memwrite/memwrite-go/internal/sched"
)

// maxJournaled bounds the part of a body that is read ahead, for the journal
// and for finding its identity. The service reads on from there.
const maxJournaled = 1 << 20

// maxDrained bounds what is read of a refused body before it is answered.
const maxDrained = 8 << 20

// serve is the way of every request: journal, faults that strike before the
// service, the service, faults that strike after it.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if s.closing.Load() {
		panic(http.ErrAbortHandler)
	}
	s.active.Add(1)
	defer s.active.Done()
	if strings.HasPrefix(r.URL.Path, "/_control/") {
		s.control(w, r)
		return
	}
	if strings.HasPrefix(r.URL.Path, inspector.Root) {
		s.inspector.ServeHTTP(w, r)
		return
	}
	x := &exchange{Context: r.Context()}
	body := &x.body
	body.readAhead(r)
	r.Body = body
	entry := s.journal.open(&entry{
		at: s.clock.Now(), method: r.Method, path: r.URL.EscapedPath(), query: r.URL.RawQuery,
		header: keepHeader(r.Header), body: body.ahead,
	})
	matches := func(f *Fault) bool {
		return (f.Key == "" || f.Key == s.journal.identity(entry).String()) && (f.Route == "" || f.Route == entry.route())
	}
	if a := s.faults.strike(s.journal.struck(entry), matches, Reset, Status, IdempotencyIncomplete, ReservationInProgress); a != nil {
		s.before(w, r, entry, a)
		return
	}

	x.entry = entry
	out := &x.out
	out.header = w.Header()
	s.svc.ServeIn(x, out, r)
	s.journal.change(func() { entry.status, entry.answer = out.status, out.body })
	if r.Context().Err() != nil {
		s.journal.change(func() { entry.dropped = true })
		panic(http.ErrAbortHandler)
	}
	if a := s.faults.strike(s.journal.struck(entry), matches, DropResponse, Truncate, Stall); a != nil {
		s.after(w, r, entry, a, out)
		return
	}
	// A caller that is still sending a body that was refused would see a reset
	// in place of the answer, so the rest is read, up to a bound. The read
	// timeout bounds it in time.
	if !body.whole {
		_, _ = io.CopyN(io.Discard, r.Body, maxDrained)
	}
	out.send(w, -1)
}

// exchange is a request on its way through the service with its answer, and the
// context the service finds its entry of the journal in.
type exchange struct {
	context.Context
	entry *entry
	body  aheadBody
	out   buffered
}

func (x *exchange) Value(key any) any {
	if key == (entryKey{}) {
		return x.entry
	}
	return x.Context.Value(key)
}

// aheadBody is a request's body, of which the first part has been read.
type aheadBody struct {
	ahead []byte
	at    int
	err   error // that ended the reading ahead, after what is there
	whole bool  // there is no more
	rest  io.ReadCloser
}

// readAhead reads up to maxJournaled bytes of a body.
func (b *aheadBody) readAhead(r *http.Request) {
	b.rest = r.Body
	if n := r.ContentLength; n > 0 && n <= maxJournaled {
		b.ahead = make([]byte, n)
		var got int
		if got, b.err = io.ReadFull(r.Body, b.ahead); b.err == nil {
			b.whole = true
		} else {
			b.ahead = b.ahead[:got]
		}
		return
	}
	b.ahead, b.err = io.ReadAll(io.LimitReader(r.Body, maxJournaled))
	b.whole = b.err == nil && len(b.ahead) < maxJournaled
}

func (b *aheadBody) Read(p []byte) (int, error) {
	switch {
	case b.at < len(b.ahead):
		n := copy(p, b.ahead[b.at:])
		b.at += n
		return n, nil
	case b.err != nil:
		return 0, b.err
	case b.whole:
		return 0, io.EOF
	}
	return b.rest.Read(p)
}

// Whole lets the service read the body where it lies.
func (b *aheadBody) Whole() []byte {
	if !b.whole || b.at > 0 {
		return nil
	}
	b.at = len(b.ahead)
	return b.ahead
}

func (b *aheadBody) Close() error { return b.rest.Close() }

// before answers in the service's place.
func (s *Server) before(w http.ResponseWriter, r *http.Request, entry *entry, a *Armed) {
	f := a.fault
	s.journal.change(func() { entry.fault = f.Kind; entry.dropped = f.Kind == Reset })
	status, code, message := http.StatusServiceUnavailable, "", "the service is away"
	switch f.Kind {
	case Reset:
		reset(w)
		return
	case IdempotencyIncomplete:
		status, code, message = http.StatusConflict, "IDEMPOTENCY_INCOMPLETE", "an operation with this key is still running"
	case ReservationInProgress:
		status, code, message = http.StatusConflict, "USAGE_RESERVATION_IN_PROGRESS", "a twin of this request is reserving"
	case Status:
		if f.Code != 0 {
			status = f.Code
		}
		if code = f.ErrorCode; status == http.StatusTooManyRequests {
			message = "Rate limit exceeded (per-minute)."
		}
	}
	out := &buffered{header: w.Header()}
	if f.RetryAfter != "" {
		out.header.Set("Retry-After", f.RetryAfter)
	}
	out.header.Set("Content-Type", "application/json")
	out.WriteHeader(status)
	body := f.Body
	if body == "" {
		requestID := token()
		out.header.Set("X-Request-ID", requestID)
		body = faultBody(r.URL.Path, status, code, message, f.RetryAfter, requestID)
	}
	_, _ = io.WriteString(out, body)
	s.journal.change(func() { entry.status, entry.answer = status, []byte(body) })
	out.send(w, -1)
}

// entryKey finds a request's entry of the journal in its context.
type entryKey struct{}

// usualCodes are what each wire says with a status.
var usualCodes = map[bool]map[int]string{
	true: {
		400: "INVALID_REQUEST", 401: "INVALID_API_KEY", 402: "INSUFFICIENT_CREDITS", 403: "INSUFFICIENT_PERMISSION", 404: "MEMORY_NOT_FOUND",
		405: "METHOD_NOT_ALLOWED", 409: "IDEMPOTENCY_CONFLICT", 413: "DELETE_ALL_TOO_LARGE", 429: "RATE_LIMITED", 500: "MEMORY_ENGINE_ERROR",
	},
	false: {400: "ValidationError", 422: "VALIDATION_ERROR", 429: "RATE_LIMIT_EXCEEDED", 500: "INTERNAL_ERROR"},
}

// faultBody is an error in the shape of the wire that was called.
func faultBody(path string, status int, code, message, retryAfter, requestID string) string {
	fish := !(strings.HasPrefix(path, "/memory/") || strings.HasPrefix(path, "/v1/memory/") || strings.HasPrefix(path, "/org/") || path == "/health")
	code = cmp.Or(code, usualCodes[fish][status], "SERVICE_UNAVAILABLE")
	var body any
	switch {
	case fish:
		body = map[string]any{"code": code, "message": message, "request_id": requestID}
	case code == "limit_exceeded":
		body = map[string]any{"detail": map[string]any{"error": code, "message": message}}
	default:
		inner := map[string]any{"code": code, "message": message}
		if n, err := strconv.Atoi(retryAfter); err == nil && status == http.StatusTooManyRequests {
			inner["retry_after"] = n
		}
		body = map[string]any{"error": inner, "request_id": requestID}
	}
	out, _ := json.Marshal(body)
	return string(out) + "\n"
}

// after keeps the answer of work that is done from its caller.
func (s *Server) after(w http.ResponseWriter, r *http.Request, entry *entry, a *Armed, out *buffered) {
	f := a.fault
	s.journal.change(func() { entry.fault = f.Kind })
	lost := func() {
		s.journal.change(func() { entry.dropped = true })
		panic(http.ErrAbortHandler)
	}
	switch f.Kind {
	case DropResponse:
		lost()
	case Truncate:
		out.send(w, f.Bytes)
		lost()
	case Stall:
		d := f.Delay
		if d <= 0 {
			d = sched.Forever
		}
		if err := s.clock.Wait(r.Context(), d, a.gate); err != nil && !errors.Is(err, sched.ErrElapsed) {
			lost()
		}
		if s.closing.Load() {
			lost()
		}
		out.send(w, -1)
	}
}

// reset closes the connection so that the caller sees a reset and no answer.
func reset(w http.ResponseWriter) {
	if h, ok := w.(http.Hijacker); ok {
		if conn, _, err := h.Hijack(); err == nil {
			if tcp, ok := conn.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0)
			}
			_ = conn.Close()
			return
		}
	}
	panic(http.ErrAbortHandler)
}

// buffered holds an answer until it is known what becomes of it. Its header is
// that of the writer it is sent to.
type buffered struct {
	header http.Header
	status int
	body   []byte
}

func (b *buffered) Header() http.Header { return b.header }

func (b *buffered) WriteHeader(status int) {
	if b.status == 0 {
		b.status = status
	}
}

func (b *buffered) Write(p []byte) (int, error) {
	b.WriteHeader(http.StatusOK)
	b.body = append(b.body, p...)
	return len(p), nil
}

// send writes the answer; with cut >= 0 only so many bytes of its body, below
// the length its header promises.
func (b *buffered) send(w http.ResponseWriter, cut int) {
	if h := w.Header(); len(h["Content-Length"]) == 0 {
		h.Set("Content-Length", strconv.Itoa(len(b.body)))
	}
	body := b.body
	if cut >= 0 {
		body = body[:min(cut, max(len(body)-1, 0))]
	}
	w.WriteHeader(max(b.status, http.StatusOK))
	_, _ = w.Write(body)
	if f, ok := w.(http.Flusher); ok && cut >= 0 {
		f.Flush()
	}
}
