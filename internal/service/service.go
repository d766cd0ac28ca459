// Package service is HTTP in front of the protocol: it authenticates, limits,
// decodes strictly, asks the backend, and answers in the words of the wire the
// caller is on. It knows no rule of the protocol.
package service

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/memwrite/memwrite-go/internal/api/server"
	"github.com/memwrite/memwrite-go/internal/sched"
)

// The services, as keys and scopes name them.
const (
	ServiceMemorySync = "memorysync"
	ServiceFishMem    = "fishmem"
)

// Options settle how the service behaves, above all where the live services
// are unclear or differ from their own documents. The zero value of a field is
// its default.
type Options struct {
	// InlineWait is how long /memory/add waits for its task; 25 s.
	InlineWait time.Duration
	// MaxBody bounds a request body in bytes; 1 MiB. FishMem's own limit of
	// 250,000 bytes for a command is checked beside it.
	MaxBody int64
	// MinText is the length /memory/add asks of a text that is no filler, in
	// characters after trimming; 10, as documented. Below 0: none.
	MinText int
	// MaxMetadata bounds metadata on MemorySync in bytes, 413 above; 64,000.
	MaxMetadata int
	// TurnStatus is the HTTP status of an accepted turn; 201. Older
	// deployments say 200.
	TurnStatus int
	// StrictKeys asks for an Idempotency-Key on verbatim writes and deletes
	// too, as the hosted FishMem does; default: only inferred writes need it.
	StrictKeys bool
	// EventListScope is the permission GET /v1/events needs; memory:read,
	// which is what the live code asks although its documents say
	// operations:read.
	EventListScope string
	// DefaultTenant is the tenant_id every key may use beside its own
	// workspace; "default".
	DefaultTenant string
	// MemorySyncRates and FishMemRates limit each key; none by default.
	MemorySyncRates []Window
	FishMemRates    []Window
	// LowValueReason is the reason of a skipped filler; "low_value". The live
	// string is not known.
	LowValueReason string
	// NothingReason is the reason when extraction found nothing;
	// "no_high_value_content".
	NothingReason string
	// Log gets one line a request that ended in a 500: never text or keys.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&o.InlineWait, 25*time.Second)
	if o.MaxBody == 0 {
		o.MaxBody = 1 << 20
	}
	if o.MinText == 0 {
		o.MinText = 10
	}
	if o.MaxMetadata == 0 {
		o.MaxMetadata = 64_000
	}
	if o.TurnStatus == 0 {
		o.TurnStatus = http.StatusCreated
	}
	for p, v := range map[*string]string{
		&o.EventListScope: ScopeMemoryRead, &o.DefaultTenant: "default",
		&o.LowValueReason: "low_value", &o.NothingReason: "no_high_value_content",
	} {
		if *p == "" {
			*p = v
		}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Service answers both wires. It is safe for concurrent use.
type Service struct {
	opts    Options
	sched   sched.Scheduler
	backend Backend
	keys    *Keys
	rates   rates

	accesses accesses
	low      func(string) bool
	mux      *http.ServeMux
}

// New makes a service. lowValue says whether a text is filler that is not
// worth extracting.
func New(backend Backend, keys *Keys, s sched.Scheduler, lowValue func(string) bool, opts Options) *Service {
	svc := &Service{opts: opts.withDefaults(), sched: s, backend: backend, keys: keys, low: lowValue, mux: http.NewServeMux()}
	server.HandlerWithOptions(svc, server.StdHTTPServerOptions{
		BaseRouter:       svc.mux,
		ErrorHandlerFunc: svc.badParameter,
	})
	return svc
}

// Reset forgets the rate windows and which records were read.
func (s *Service) Reset() {
	s.rates.reset()
	s.accesses.reset()
}

var _ server.ServerInterface = (*Service)(nil)

// wireOf tells the services apart by path; they share no path.
func wireOf(path string) wire {
	for _, p := range []string{
		"/v1/memories", "/v1/events", "/v1/operations", "/v1/health", "/v1/usage",
		// Those that are not served here are not the other service's either.
		"/v1/entities", "/v1/documents", "/v1/document-uploads", "/v1/exports", "/v1/imports", "/v1/beliefs", "/v1/profile", "/v1/openapi.json",
	} {
		if rest, ok := strings.CutPrefix(path, p); ok && (rest == "" || rest[0] == '/') {
			return fishMem
		}
	}
	return memorySync
}

type callKey struct{}

// call is what is known of a request before its handler runs. It is the context
// the handler finds it in, too.
type call struct {
	context.Context
	key       Key
	wire      wire
	ids       [2]string // of the request and of its trace; the header's values lie here
	requestID string
	trace     string // traceparent, "" without a valid one
}

func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

func callOf(r *http.Request) *call {
	if c, ok := r.Context().Value(callKey{}).(*call); ok {
		return c
	}
	return &call{}
}

// Values of headers that are always the same; nobody may change them.
var (
	noSniff  = []string{"nosniff"}
	noStore  = []string{"no-store"}
	jsonType = []string{"application/json"}
)

// ServeHTTP checks in the order of the live services: rate limit, key,
// permission, then the request itself.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.ServeIn(r.Context(), w, r) }

// ServeIn is ServeHTTP in another context than the request's own.
func (s *Service) ServeIn(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/memory/retrieve" { // the older name of the same operation
		to := *r.URL
		to.Path, to.RawPath = "/memory/query", ""
		r = r.WithContext(ctx)
		r.URL = &to
	}
	c := &call{Context: ctx, wire: wireOf(r.URL.Path), trace: traceparent(r.Header.Get("Traceparent"))}
	h := w.Header()
	c.ids = newRequestIDs(c.wire)
	c.requestID = c.ids[0]
	h[headerRequestID] = c.ids[:1:1]
	if c.wire == memorySync {
		h[headerTraceID] = c.ids[1:]
	}
	h[headerNoSniff], h["Cache-Control"] = noSniff, noStore
	defer func() {
		if v := recover(); v != nil {
			if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(v)
			}
			s.opts.Log.Error("a handler panicked", "method", r.Method, "request_id", c.requestID)
			s.internal(w, c)
		}
	}()

	handler, pattern := s.mux.Handler(r)
	scope, public := s.scopeOf(pattern)
	if f := s.limit(w, r, c); f != nil {
		f.write(w, c.wire, c.requestID)
		return
	}
	if !public {
		key, f := s.authenticate(r, c.wire)
		if f == nil {
			f = permit(key, c.wire, scope)
		}
		if f != nil {
			f.write(w, c.wire, c.requestID)
			return
		}
		c.key = key
	}
	if pattern == "" {
		s.noRoute(w, r, c)
		return
	}
	if strings.Contains(pattern, "{") {
		handler = s.mux // which fills in what the pattern leaves open
	}
	handler.ServeHTTP(w, r.WithContext(c))
}

// limit counts the call. A caller without a key shares a bucket with its
// address, so that guessing keys is limited too.
func (s *Service) limit(w http.ResponseWriter, r *http.Request, c *call) *failure {
	windows := s.opts.MemorySyncRates
	secret := r.Header.Get(headerAPIKey)
	if c.wire == fishMem {
		windows, secret = s.opts.FishMemRates, bearer(r)
	}
	if len(windows) == 0 {
		return nil
	}
	caller := "addr:" + hostOf(r.RemoteAddr)
	if secret != "" {
		caller = NewKey(secret, "", "").id()
	}
	full, wait, left := s.rates.take(caller, s.sched.Now(), windows)
	rateHeaders(w.Header(), c.wire, windows, left)
	if full == nil {
		return nil
	}
	return rateFailure(c.wire, full, wait)
}

func hostOf(addr string) string {
	if i := strings.LastIndexByte(addr, ':'); i > 0 {
		return addr[:i]
	}
	return addr
}

// noRoute tells an unknown path from a known one with another method.
func (s *Service) noRoute(w http.ResponseWriter, r *http.Request, c *call) {
	h, _ := s.mux.Handler(r)
	probe := &statusProbe{header: http.Header{}}
	h.ServeHTTP(probe, r)
	if allow := probe.header.Get("Allow"); allow != "" {
		w.Header().Set("Allow", allow)
		f := fail(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED", "the method is not allowed here")
		if c.wire == memorySync {
			f = detail(http.StatusMethodNotAllowed, "Method Not Allowed")
		}
		f.write(w, c.wire, c.requestID)
		return
	}
	f := fail(http.StatusNotFound, "NOT_FOUND", "no such path")
	if c.wire == memorySync {
		f = detail(http.StatusNotFound, "Not Found")
	}
	f.write(w, c.wire, c.requestID)
}

type statusProbe struct{ header http.Header }

func (p *statusProbe) Header() http.Header         { return p.header }
func (p *statusProbe) Write(b []byte) (int, error) { return len(b), nil }
func (p *statusProbe) WriteHeader(int)             {}

// badParameter is a header, path or query value the generated code could not
// read.
func (s *Service) badParameter(w http.ResponseWriter, r *http.Request, err error) {
	c := callOf(r)
	name := "parameter"
	var header *server.RequiredHeaderError
	var format *server.InvalidParamFormatError
	var many *server.TooManyValuesForParamError
	switch {
	case errors.As(err, &header):
		name = header.ParamName
	case errors.As(err, &format):
		name = format.ParamName
	case errors.As(err, &many):
		name = many.ParamName
	}
	switch {
	case strings.EqualFold(name, "X-End-User-ID"):
		s.refuse(w, r, fail(http.StatusBadRequest, "MISSING_END_USER_ID", "X-End-User-ID is required"))
	case strings.EqualFold(name, "Idempotency-Key"):
		s.refuse(w, r, fail(http.StatusBadRequest, "INVALID_IDEMPOTENCY_KEY", "the Idempotency-Key must be sent once"))
	case c.wire == fishMem:
		s.refuse(w, r, fail(http.StatusBadRequest, "INVALID_REQUEST", name+" is not valid"))
	default:
		f := fail(http.StatusUnprocessableEntity, "VALIDATION_ERROR", name+" is not valid")
		f.Details = []issue{{Field: name, Type: "type", Message: "is not valid"}}
		s.refuse(w, r, f)
	}
}

func (s *Service) refuse(w http.ResponseWriter, r *http.Request, f *failure) {
	c := callOf(r)
	f.write(w, c.wire, c.requestID)
}

// internal is the answer to what should not happen. It says nothing of why.
func (s *Service) internal(w http.ResponseWriter, c *call) {
	f := fail(http.StatusInternalServerError, "INTERNAL_ERROR", "internal error")
	if c.wire == fishMem {
		f = fail(http.StatusInternalServerError, "MEMORY_ENGINE_ERROR", "the engine failed")
	}
	f.write(w, c.wire, c.requestID)
}

// newRequestIDs are the id of a request and that of its trace: 32 hex digits on
// MemorySync, and one UUID on FishMem. They decide nothing, so they may come from
// the machine's own randomness.
func newRequestIDs(on wire) [2]string {
	var raw [32]byte
	for at := 0; at < len(raw); at += 8 {
		binary.LittleEndian.PutUint64(raw[at:], rand.Uint64())
	}
	if on == memorySync {
		var digits [64]byte
		hex.Encode(digits[:], raw[:])
		both := string(digits[:])
		return [2]string{both[:32], both[32:]}
	}
	raw[6], raw[8] = raw[6]&0x0f|0x40, raw[8]&0x3f|0x80
	h := hex.EncodeToString(raw[:16])
	return [2]string{h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]}
}
