package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/hashicorp/go-retryablehttp"
)

// run is one call on its way: the state the hooks of go-retryablehttp share.
// One call has one run and one goroutine.
//
// The library's loop calls RoundTrip (through an http.Client, for redirects),
// decide, wait and proceed, in this order, until one says no. What it returns
// at the end is not looked at; the run knows more.
type run struct {
	c    *Client
	call Call
	ctx  context.Context
	pass pass

	tries   int // exchanges
	spent   int // of Policy.MaxTries
	taken   int // tokens the last retry took
	written bool
	drawn   [2]backoff.BackOff // for throttled or not

	// about the last try
	answer   *Answer
	err      error
	earlier  *Answer // the last answer of the tries before
	decision Decision

	// what follows
	pending  time.Duration // the wait before the next try
	stop     error         // why none follows, beyond the answer itself
	askWait  time.Duration // Failure.Wait
	finished bool
	returned bool

	// what drives it; here so that a call allocates them once, together
	http  http.Client
	loop  retryablehttp.Client
	req   retryablehttp.Request
	plain http.Request
}

func (r *run) do() (*Result, error) {
	if err := r.check(); err != nil {
		r.decision = Decision{Class: Final, Reason: "request"}
		return nil, r.failure(err)
	}
	if r.ctx.Err() != nil {
		r.decision = Decision{Class: NoAnswer, Reason: "context"}
		return nil, r.failure(context.Cause(r.ctx))
	}
	r.c.gate.admit(&r.pass, r.c.calls.Add(1))
	defer func() {
		if !r.returned { // a RoundTripper or an observer panicked; the way must not stay closed for it
			r.c.gate.abandon(&r.pass)
		}
	}()
	res, err := r.tryLoop()
	r.returned = true
	return res, err
}

func (r *run) tryLoop() (*Result, error) {
	if !r.enter() {
		return nil, r.failure(r.stop)
	}

	r.http = http.Client{Transport: r, CheckRedirect: mayFollow, Jar: r.c.jar}
	r.loop = retryablehttp.Client{
		HTTPClient:   &r.http,
		RetryMax:     1<<31 - 1, // decide counts
		CheckRetry:   r.decide,
		Backoff:      r.wait,
		PrepareRetry: r.proceed,
		ErrorHandler: noHandler,
	}
	// What the library and http.Client see has neither headers nor a body nor
	// the call's context: RoundTrip gives each try its own, and what they
	// would copy on the way costs a tenth of a call.
	r.plain = http.Request{Method: r.call.Method, URL: r.call.URL, Header: http.Header{}}
	r.req.Request = &r.plain
	_, _ = r.loop.Do(&r.req)
	if r.finished && r.decision.Class == Success {
		return &Result{Answer: r.answer, Tries: r.tries}, nil
	}
	return nil, r.failure(r.stop)
}

// noHandler keeps the library from inventing an error. Bodies are read and
// closed by then.
func noHandler(_ *http.Response, err error, _ int) (*http.Response, error) {
	if err == nil {
		err = errors.New("transport: no success")
	}
	return nil, err
}

func (r *run) check() error {
	if r.call.URL == nil {
		return errors.New("the call has no URL")
	} else if !sameOrigin(r.call.URL, r.c.origin) {
		return fmt.Errorf("the request is for the host %q, not for the client's", r.call.URL.Host)
	}
	return nil
}

// enter passes the gate, or sets why not.
func (r *run) enter() bool {
	_, wait, err := r.c.gate.enter(r.ctx, &r.pass)
	if err == nil {
		return true
	}
	r.stop, r.askWait = err, max(r.askWait, wait)
	return false
}

// RoundTrip is one try, as seen by http.Client: it sends, and reads the body
// before it returns. redirected is the request without body and headers, or a
// redirect of it that is followed.
//
// run has no CloseIdleConnections, so the library cannot flush the pool that
// all calls share, which it does after each call that fails.
func (r *run) RoundTrip(redirected *http.Request) (*http.Response, error) {
	if r.answer != nil {
		r.earlier = r.answer
	}
	r.answer, r.err = nil, nil
	if r.ctx.Err() != nil {
		r.err = context.Cause(r.ctx)
		r.decision = errorDecision(r.ctx.Err())
		return nil, r.err
	}
	timeout := r.c.policy.TryTimeout
	if r.call.TryTimeout > 0 {
		timeout = min(timeout, r.call.TryTimeout)
	}
	ctx, cancel := r.c.sched.WithTimeout(r.ctx, timeout, ErrTryTimeout)
	defer cancel()
	r.tries++
	out := r.outgoing(ctx, redirected)
	began := r.began()
	resp, err := r.send(out)
	if err == nil {
		limit := r.c.policy.BodyLimit
		if r.call.BodyLimit > 0 {
			limit = r.call.BodyLimit
		}
		rd := reader{sched: r.c.sched, limit: limit, error: r.c.policy.ErrorBodyLimit}
		r.answer, err = rd.read(ctx, cancel, resp)
		resp.Body = http.NoBody
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	r.err = err
	r.written = r.written || err == nil || r.answer != nil || !unwritten(err)
	r.decision = r.judge()
	r.ended(began)
	if r.answer == nil {
		return nil, err
	}
	return resp, nil
}

// errNoResponse is what a RoundTripper is that breaks its contract.
var errNoResponse = errors.New("the RoundTripper returned neither an answer nor an error")

// send holds a RoundTripper to its contract: an answer with a body or an error,
// and not both.
func (r *run) send(out *http.Request) (*http.Response, error) {
	resp, err := r.c.base.RoundTrip(out)
	switch {
	case resp == nil && err == nil:
		return nil, errNoResponse
	case resp == nil:
		return nil, err
	case resp.Body == nil: // a RoundTripper made for a test
		resp.Body = http.NoBody
	}
	if err != nil {
		resp.Body.Close()
	}
	return resp, err
}

// judge turns what came back, or did not, into a decision.
func (r *run) judge() Decision {
	if r.answer == nil {
		if err := r.ctx.Err(); err != nil { // whatever its cause says
			return errorDecision(err)
		}
		return errorDecision(r.err)
	}
	d := r.call.Classify(r.answer)
	if d.Class == Success {
		switch {
		case r.answer.Truncated:
			d = Decision{Class: NoAnswer, Reason: "truncated", Hint: d.Hint, HasHint: d.HasHint}
		case r.answer.TooLarge:
			d = Decision{Class: Final, Reason: "answer_too_large"}
		}
	}
	return d
}

// decide is the library's CheckRetry. It reports the try to the gate and
// settles what follows; the waiting itself is done in wait.
func (r *run) decide(_ context.Context, _ *http.Response, err error) (bool, error) {
	if err != nil && r.err == nil { // http.Client refused before or after the exchange, a bad Location say
		r.err = bare(err)
		if r.answer == nil {
			r.decision = errorDecision(r.err)
		}
	}
	again := r.follow()
	r.finished = !again
	return again, nil
}

// wait is the library's Backoff. It waits here, on the client's own clock, and
// returns 0; what it finds out is for proceed to report.
func (r *run) wait(time.Duration, time.Duration, int, *http.Response) time.Duration {
	if r.pending > 0 {
		if err := r.c.sleep(r.ctx, r.pending); err != nil {
			r.stop = err
			return 0
		}
	}
	r.enter()
	return 0
}

// proceed is the library's PrepareRetry: the last moment before the next try.
// The library looks at the context and at its own timer of nothing at once, and
// takes either.
func (r *run) proceed(next *http.Request) error {
	if r.stop == nil && r.ctx.Err() != nil {
		r.c.gate.abandon(&r.pass)
		r.stop = context.Cause(r.ctx)
	}
	next.Header = http.Header{} // without the cookies of the last try
	return r.stop
}
