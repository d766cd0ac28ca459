// Package service is HTTP in front of the protocol: it authenticates, limits,
// decodes strictly, asks the backend, and answers in the words of the wire the
// caller is on. It knows no rule of the protocol.
package service

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/memwrite/memwrite-go/internal/api/server"
	"github.com/memwrite/memwrite-go/internal/sched"
)

// The services, as keys and scopes name them.
const (
	ServiceMemorySync = "memorysync"
	ServiceFishMem    = "fishmem"
)

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
