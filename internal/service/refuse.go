package service

import (
	"errors"
	"net/http"
	"strings"

	"github.com/memwrite/memwrite-go/internal/api/server"
)

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
