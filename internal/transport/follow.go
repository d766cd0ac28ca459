package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/memwrite/memwrite-go/internal/sched"
)

// follow settles, after a try, whether another one follows and when. The order
// of the questions matters: what the answer proves comes first, what the call
// may still spend second, and whether the wait fits last.
func (r *run) follow() bool {
	d := r.decision
	if r.ctx.Err() != nil && r.answer == nil {
		r.c.gate.abandon(&r.pass)
		r.stop = context.Cause(r.ctx)
		return false
	}
	own := time.Duration(0) // drawn at most once a try: a strategy may count
	if d.Class == Throttled {
		own = r.draw(!d.HasHint)
	}
	probe, closed := r.c.gate.leave(&r.pass, d.Class, r.pauseFor(d, own), r.lastWord())
	if d.Class == Success {
		r.c.budget.success(r.taken)
		return false
	}
	if d.HasHint {
		r.askWait = d.Hint
	}
	switch {
	case !d.Class.retryable():
		return false
	case r.ctx.Err() != nil:
		r.stop = context.Cause(r.ctx)
		return false
	case !r.call.Safe, r.call.Once, r.c.policy.MaxTries == 1:
		r.stop = r.err
		return false
	case d.HasHint && d.Hint > r.c.policy.MaxServerWait:
		r.stop = ErrServerWait
		return false
	}

	r.taken, r.pending = 0, 0
	if free := closed && d.Class.down() && (probe || !d.HasHint); !free {
		r.spent++
		if own == 0 {
			own = r.draw(d.Class == Throttled)
		}
		if r.spent >= r.c.policy.MaxTries || own == backoff.Stop {
			r.stop = r.err
			return false
		}
		taken, ok := r.c.budget.take(d.Class == Throttled)
		if !ok {
			r.stop = ErrBudget
			return false
		}
		r.taken = taken
	}
	// A closed gate or a pause holds the call; it needs no back-off of its own.
	// A server that fails and says for how long is believed: that wait is not
	// the gate's, whose 30 s it may exceed.
	if !closed || d.Class.down() && d.HasHint {
		r.pending = max(own, 0)
		if d.HasHint {
			r.pending = max(own, aboveHint(r.c.sched, d.Hint))
		}
		if deadline, ok := r.ctx.Deadline(); ok && deadline.Sub(r.c.sched.Now()) <= r.pending {
			r.stop = &deadlineError{r.pending, context.DeadlineExceeded}
			return false
		}
	}
	r.c.emit(Event{
		Kind: Retry, Op: r.call.Op, Try: r.tries, Class: d.Class, Reason: d.Reason,
		Wait: r.pending, Gate: closed, Probe: probe, Context: r.ctx,
	})
	return true
}

// draw takes the call's own next wait; backoff.Stop when there is none.
func (r *run) draw(throttled bool) time.Duration {
	p := &r.c.policy
	kind, base := 0, p.Base
	switch {
	case p.NewBackOff != nil: // one for both kinds
	case throttled:
		kind, base = 1, p.ThrottledBase
	case r.answer == nil && unwritten(r.err) && r.tries == 1:
		// The request never left, so nothing is known about the server's load;
		// later waits are of the ordinary series.
		return newFullJitter(r.c.sched, p.UnwrittenBase, p.Cap, p.Floor).NextBackOff()
	}
	if r.drawn[kind] == nil {
		if p.NewBackOff != nil {
			r.drawn[kind] = p.NewBackOff()
		} else {
			r.drawn[kind] = newFullJitter(r.c.sched, base, p.Cap, p.Floor)
		}
	}
	d := r.drawn[kind].NextBackOff()
	if d == backoff.Stop {
		return d
	}
	return max(d, p.Floor)
}

// pauseFor is how long a 429, or a 503 with a hint, keeps the client off. A 429
// that asks for less than the call's own back-off, for nothing at all say, as
// limiters do that round down, is backed off from: its tries would be used up
// within a tenth of a second.
func (r *run) pauseFor(d Decision, own time.Duration) time.Duration {
	switch {
	case d.Class == Throttled:
		return max(d.Hint, own, r.c.policy.Floor)
	case d.HasHint:
		return max(d.Hint, r.c.policy.Floor)
	}
	return 0
}

// lastWord is what calls are told that never leave because of this one.
func (r *run) lastWord() *Failure {
	if !r.decision.Class.retryable() {
		return nil
	}
	f := &Failure{Answer: r.answer, Decision: r.decision, Cause: r.err}
	if f.Answer != nil && r.call.Redact != nil {
		f.Answer = r.call.Redact(f.Answer)
	}
	return f
}

func (r *run) failure(cause error) *Failure {
	f := &Failure{
		Op: r.call.Op, Answer: r.answer, Decision: r.decision, Tries: r.tries, Wait: r.askWait,
		Cause: cause, Written: r.written, Unsent: r.tries == 0,
	}
	if f.Cause == nil {
		f.Cause = r.err
	}
	if f.Answer == nil {
		f.Answer = r.earlier
	}
	if f.Unsent && f.Decision == (Decision{}) {
		f.Decision = Decision{Class: Server, Reason: "unsent"}
		if last := r.c.gate.lastWord(); last != nil {
			f.Answer, f.Decision = last.Answer, last.Decision
		}
	}
	return f
}

func (g *gate) lastWord() *Failure {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.last
}

func (c *Client) sleep(ctx context.Context, d time.Duration) error {
	return sched.Sleep(ctx, c.sched, d)
}

// errorDecision classifies a try that got no answer. A few errors are about
// the request or the way to the server and would be the same the next time.
func errorDecision(err error) Decision {
	var cert *tls.CertificateVerificationError
	var op *net.OpError
	switch {
	case errors.Is(err, ErrTryTimeout):
		return Decision{Class: NoAnswer, Reason: "timeout"}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Decision{Class: NoAnswer, Reason: "context"}
	case errors.As(err, &cert):
		return Decision{Class: Final, Reason: "certificate"}
	case err != nil && (strings.Contains(err.Error(), "invalid header field") ||
		strings.Contains(err.Error(), "server gave HTTP response to HTTPS client")):
		return Decision{Class: Final, Reason: "request"}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return Decision{Class: NoAnswer, Reason: "eof"}
	case errors.As(err, &op):
		return Decision{Class: NoAnswer, Reason: op.Op} // dial, read, write
	}
	return Decision{Class: NoAnswer, Reason: "transport"}
}

// unwritten says whether err proves that no byte of the request was sent: the
// connection, to the server or to the proxy before it, was never made.
func unwritten(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	return errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect") ||
		errors.As(err, &dns) || errors.As(err, &cert) || errors.As(err, &record)
}

// bare strips http.Client's wrapping, which holds the URL with its query.
func bare(err error) error {
	var u *url.Error
	for errors.As(err, &u) {
		err = u.Err
	}
	return err
}
