package memwrite

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/memwrite/memwrite-go/internal/transport"
)

// request is one call on its way to the try loop.
type request struct {
	op       string
	identity string
	http     *http.Request
	body     []byte
	safe     bool          // a read, or a write the service recognises when it comes twice
	texts    []string      // what the service's words must not repeat
	timeout  time.Duration // of a try; 0 for the policy's
}

// answer is a success of the try loop, not yet decoded.
type answer struct {
	*transport.Answer
	tries int
}

// need gives the service or says which option would set it.
func (c *Client) need(op string, s *service, option string) (*service, error) {
	if s == nil {
		return nil, invalid(op, "service", "not configured; use "+option)
	}
	return s, nil
}

func (c *Client) forMemorySync(op string) (*service, error) {
	return c.need(op, c.memorySync, "WithMemorySync")
}

func (c *Client) forFishMem(op string) (*service, error) {
	return c.need(op, c.fishMem, "WithFishMem")
}

// classify gives the try loop the meaning of an answer.
func (s *service) classify(a *transport.Answer) transport.Decision {
	j := judge(a, s.sched.Now())
	return transport.Decision{Class: j.class, Reason: j.reason, Hint: j.hint, HasHint: j.hasHint}
}

// acceptJSON is shared by all requests: each try sends a copy of its headers.
var acceptJSON = []string{"application/json"}

// post is a request for JSON to be written to path. The generated builder
// parses the base URL three times for each call, which is a fifth of what a
// call costs; this one is for the write that is made most.
func (s *service) post(path string) *http.Request {
	u := *s.root
	u.Path += path
	return &http.Request{
		Method: http.MethodPost, URL: &u, Host: u.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: make(http.Header, 8),
	}
}

// do sends r and gives its good answer, or an *Error.
func (s *service) do(ctx context.Context, r request) (answer, error) {
	r.http.Header[s.header] = s.value
	r.http.Header["Accept"] = acceptJSON
	r.http.Header["User-Agent"] = s.agent
	res, err := s.tries.Do(ctx, transport.Call{
		Op: r.op, Request: r.http, Body: r.body, Safe: r.safe, TryTimeout: r.timeout,
	})
	if err != nil {
		return answer{}, s.failed(r, err)
	}
	return answer{res.Answer, res.Tries}, nil
}

// failed turns the try loop's failure into the Error a caller reads.
func (s *service) failed(r request, err error) *Error {
	e := &Error{Op: r.op, Identity: r.identity, Kind: KindUnknown}
	var f *transport.Failure
	if !errors.As(err, &f) {
		e.causes = []error{withoutURL(err)}
		return e
	}
	e.Tries = f.Tries
	if f.Cause != nil {
		e.causes = []error{withoutURL(f.Cause)}
	}
	if f.Answer != nil {
		s.fill(e, r, f.Answer)
	}
	switch {
	case f.Unsent && errors.Is(f.Cause, transport.ErrGate):
		e.Kind = KindServer
	case f.Answer == nil && f.Unsent && errors.Is(f.Cause, context.Canceled):
		e.Kind = KindCanceled
	case f.Answer == nil && f.Unsent:
		e.Kind = KindUnknown
	case f.Answer == nil:
		e.Kind = KindUnknownOutcome
		if !f.Written {
			e.Message = "the request never left"
		}
	case f.Decision.Class == transport.NoAnswer:
		// The last try had no answer, whatever one before it said.
		e.Kind = KindUnknownOutcome
	}
	if f.Wait > 0 {
		e.RetryAfter = f.Wait
	}
	return e
}

// fill copies what an answer says into e, without secrets and within bounds.
func (s *service) fill(e *Error, r request, a *transport.Answer) {
	j := judge(a, s.sched.Now())
	clean := append(scrubber{s.key}, r.texts...)
	e.Status, e.Kind = a.Status, j.kind
	e.Code = clip(oneLine(clean.clean(j.code)), 100)
	e.Message = clip(oneLine(clean.clean(j.message)), maxMessage)
	e.RequestID = j.requestID
	e.RetryAfter = j.hint
	e.Details = clean.cleanJSON(j.details)
	e.Snippet = clip(clean.clean(string(a.Body)), maxSnippet)
	e.Target = a.Redirect
}

// malformed is a 2xx that is JSON and yet not the answer of this operation: a
// proxy's, or another service's. Nobody knows whether the write happened.
func (s *service) malformed(r request, a answer, why string) *Error {
	e := &Error{Op: r.op, Identity: r.identity, Tries: a.tries}
	s.fill(e, r, a.Answer)
	e.Kind, e.Message = KindUnknownOutcome, why
	return e
}

// into decodes a good answer. Unknown fields are ignored.
func (s *service) into(r request, a answer, v any) error {
	if err := json.Unmarshal(a.Body, v); err != nil {
		return s.malformed(r, a, "the answer does not have the shape of this operation's")
	}
	return nil
}

// withoutURL drops the address from net/http's errors: it names end users.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
