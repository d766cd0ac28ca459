package memwrite

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/memwrite/memwrite-go/internal/transport"
)

// jsonType is shared by all requests, and never changed.
var jsonType = []string{"application/json"}

// request is one call on its way to the try loop.
type request struct {
	op       string
	identity string
	http     *http.Request // method, address and headers; nil for a POST to the address below
	to       *url.URL
	header   http.Header
	body     []byte
	safe     bool          // a read, or a write the service recognises when it comes twice
	once     bool          // the caller has another way on: no second try
	texts    []string      // what the service's words must not repeat
	timeout  time.Duration // of a try; 0 for the policy's
	form     form          // of the answer
}

// form decodes the answer of an operation, and says why it is none of that
// operation's, or "". It runs inside the try: a 2xx of another shape, an empty
// object from a proxy for example, proves no more than an answer cut short and
// is tried again under the same identity.
type form func(body []byte) (fault string)

// decoded is the form of an answer that is decoded into v. has finds there
// what every answer of the operation holds; lacks is the fault without it.
// Unknown fields are ignored.
func decoded[T any](v *T, lacks string, has func() bool) form {
	return decodedBy(func(body []byte) error {
		*v = *new(T) // nothing of an answer that did not fit
		return json.Unmarshal(body, v)
	}, lacks, has)
}

// decodedBy is decoded with a decoder of its own.
func decodedBy(decode func(body []byte) error, lacks string, has func() bool) form {
	return func(body []byte) string {
		switch {
		case decode(body) != nil:
			return "the answer does not have the shape of this operation's"
		case !has():
			return lacks
		}
		return ""
	}
}

// answer is a success of the try loop, not yet decoded.
type answer struct {
	*transport.Answer
	tries int
}

// need gives the service or says which option would set it.
func (c *Client) need(op string, s *service, option, env string) (*service, error) {
	if s == nil {
		return nil, misconfigured(op, "service", "not configured; use "+option+", or "+env+"_BASE_URL and "+env+"_API_KEY with FromEnvironment")
	}
	return s, nil
}

func (c *Client) forMemorySync(op string) (*service, error) {
	return c.need(op, c.memorySync, "WithMemorySync", "MEMORYSYNC")
}

func (c *Client) forFishMem(op string) (*service, error) {
	return c.need(op, c.fishMem, "WithFishMem", "FISHMEM")
}

// classify gives the try loop the meaning of an answer.
func (s *service) classify(a *transport.Answer, f form, texts []string) transport.Decision {
	if f != nil && isWhole(a) && !turnFailed(a) {
		if f(a.Body) == "" {
			return transport.Decision{Class: transport.Success}
		}
		if isJSONDocument(a.Body) {
			d := transport.Decision{Class: transport.Malformed, Reason: "malformed"}
			d.Hint, d.HasHint = transport.ServerWait(a.Header, s.sched.Now())
			return d
		}
	}
	j := judge(a, s.sched.Now())
	if clean := s.hidden(texts); clean.clean(j.reason) != j.reason {
		j.reason = reasonOf(a.Status, "") // a code that repeats what was sent
	}
	return transport.Decision{Class: j.class, Reason: j.reason, Hint: j.hint, HasHint: j.hasHint}
}

// do sends r and gives its good answer, decoded by its form, or an *Error.
func (s *service) do(ctx context.Context, r request) (answer, error) {
	f, texts := r.form, r.texts
	call := transport.Call{
		Op: r.op, Method: http.MethodPost, URL: r.to, Header: r.header, Body: r.body, Safe: r.safe, Once: r.once, TryTimeout: r.timeout,
		Redact:   func(a *transport.Answer) *transport.Answer { return s.hidden(texts).answer(a) },
		Classify: func(a *transport.Answer) transport.Decision { return s.classify(a, f, texts) },
	}
	if r.http != nil {
		call.Method, call.URL, call.Header = r.http.Method, r.http.URL, r.http.Header
	}
	if s.client.calls != nil {
		return s.doObserved(ctx, r, call)
	}
	return s.try(ctx, r, call)
}

func (s *service) try(ctx context.Context, r request, call transport.Call) (answer, error) {
	res, err := s.tries.Do(ctx, call)
	if err != nil {
		return answer{}, s.failed(ctx, r, err)
	}
	return answer{res.Answer, res.Tries}, nil
}

// doObserved is do between the two ends a CallObserver sees.
func (s *service) doObserved(ctx context.Context, r request, call transport.Call) (answer, error) {
	added := http.Header{}
	ctx, end := s.client.calls.ObserveCall(ctx, Call{Service: s.name, Op: r.op, Method: call.Method}, added)
	for name := range call.Header {
		added.Del(name) // what makes the write itself is not an observer's
	}
	for _, key := range []string{"Authorization", "X-Api-Key"} {
		added.Del(key) // and with a second key a service looks at the wrong one
	}
	if len(added) > 0 {
		maps.Copy(added, call.Header)
		call.Header = added
	}
	a, err := s.try(ctx, r, call)
	end(err)
	return a, err
}

// failed turns the try loop's failure into the Error a caller reads.
func (s *service) failed(ctx context.Context, r request, err error) *Error {
	e := &Error{Op: r.op, Identity: r.identity, Kind: KindUnknown}
	var f *transport.Failure
	if !errors.As(err, &f) {
		e.causes = []error{s.quiet(r, err)}
		return e
	}
	e.Tries = f.Tries
	if f.Cause != nil {
		if ctx.Err() != nil && errors.Is(f.Cause, context.Cause(ctx)) { // the caller's words are the caller's
			e.causes = causesOf(ctx)
		} else {
			e.causes = []error{s.quiet(r, f.Cause)}
		}
	}
	if f.Answer != nil {
		s.fill(e, r, f.Answer)
	}
	switch {
	case f.Unsent && errors.Is(f.Cause, transport.ErrGate):
		e.Kind = KindServer
	case f.Answer == nil && f.Unsent && errors.Is(ctx.Err(), context.Canceled):
		e.Kind = KindCanceled
	case f.Answer == nil && f.Unsent:
		e.Kind = KindUnknown
	case f.Answer == nil:
		e.Kind = KindUnknownOutcome
		if !f.Written {
			e.Message = "no try of this call reached the service"
		}
	case f.Decision.Class == transport.NoAnswer:
		// The last try had no answer, whatever one before it said.
		e.Kind = KindUnknownOutcome
	case f.Decision.Class == transport.Malformed:
		// JSON and yet not the answer of this operation: a proxy's, or another
		// service's. Nobody knows whether the write happened.
		e.Kind, e.Message = KindUnknownOutcome, r.form(f.Answer.Body)
	}
	if f.Wait > 0 {
		e.RetryAfter = f.Wait
	}
	e.nameless = !r.safe && e.Kind == KindUnknownOutcome && (f.Answer != nil || f.Written)
	return e
}

// fill copies what an answer says into e, without secrets and within bounds.
func (s *service) fill(e *Error, r request, a *transport.Answer) {
	j := judge(a, s.sched.Now())
	clean := s.scrubber(r)
	e.Status, e.Kind = a.Status, j.kind
	e.Code = clip(oneLine(clean.clean(j.code)), 100)
	e.Message = clip(oneLine(clean.clean(j.message)), maxMessage)
	e.RequestID = clean.clean(j.requestID)
	e.RetryAfter = j.hint
	e.Details = clean.cleanJSON(j.details)
	e.Snippet = clip(clean.clean(string(a.Body)), maxSnippet)
	e.Target = clean.target(a.Redirect)
}

// unlike is an answer of the operation's shape that says it did not do it.
func (s *service) unlike(r request, a answer, kind Kind, why string) *Error {
	e := &Error{Op: r.op, Identity: r.identity, Tries: a.tries}
	s.fill(e, r, a.Answer)
	e.Kind, e.Message = kind, why
	return e
}
