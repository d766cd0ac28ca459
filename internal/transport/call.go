package transport

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Call is one thing the caller wants done.
type Call struct {
	// Op names the call in events and errors, "Add" for example.
	Op string

	// Method, URL and Header are those of every try; none of them is changed.
	// The URL is absolute, on the host of Config.BaseURL.
	Method string
	URL    *url.URL
	Header http.Header

	// Body is what every try sends.
	Body []byte

	// Safe says that sending the call twice does no more than sending it once:
	// it reads, or it carries an identity the server remembers. A call that is
	// not safe is sent once, whatever the answer.
	Safe bool

	// Once says that the caller has another way on and wants no second try.
	Once bool

	// Redact takes out of an answer what belongs to this call alone. What it
	// returns is told to other calls that end unsent because of the answer;
	// nil tells it as it is.
	Redact func(*Answer) *Answer

	// Classify replaces that of the Config for this call.
	Classify func(*Answer) Decision

	// BodyLimit replaces that of the policy when above zero, and so does
	// TryTimeout when it is shorter.
	BodyLimit  int64
	TryTimeout time.Duration
}

// Class says what a try proved and so what may follow.
type Class uint8

const (
	Success    Class = iota // done
	Final                   // the server said no; saying it again will not help
	Throttled               // too many requests: wait, then again
	Server                  // the server failed and says so
	InProgress              // an earlier try of this call is still at work
	NoAnswer                // nobody knows whether it was done: timeout, reset, a body cut short
	Malformed               // the same, after a whole answer that is not this call's: the server is up
)

func (c Class) String() string {
	names := [...]string{"success", "final", "throttled", "server", "in_progress", "no_answer", "malformed"}
	if int(c) < len(names) {
		return names[c]
	}
	return fmt.Sprintf("class(%d)", uint8(c))
}

// retryable says whether a further try can end better.
func (c Class) retryable() bool { return c >= Throttled }

// down says whether the class speaks against the server's health. A 429 does
// not (it has the pause), nor does an earlier try still at work. Nor does an
// answer of the wrong shape: whoever sent it is up and answers, and a single
// operation that is answered wrongly would hold back all the others.
func (c Class) down() bool { return c == Server || c == NoAnswer }

// Decision is what an answer, or the lack of one, means.
type Decision struct {
	Class   Class
	Reason  string        // a short word for logs, "http_503" or "timeout"
	Hint    time.Duration // how long the server asks to wait; see ServerWait
	HasHint bool
}

// Result is a call that ended well: its last answer is of class Success.
type Result struct {
	Answer *Answer
	Tries  int // HTTP exchanges made for the call, probes and sends after the gate included
}

// Failure is the one error Do returns.
type Failure struct {
	Op       string
	Answer   *Answer  // the last answer there was, maybe not of the last try; nil if none. Of an unsent call: the one that closed the way
	Decision Decision // about the last try, which may have had no answer
	Tries    int
	Wait     time.Duration // how long the server asks to wait before the call is made again; 0 if it does not
	Cause    error         // the context's cause or the transport's error; nil when the answer says it all
	Written  bool          // at least one try may have reached the server
	Unsent   bool          // no try was made
}

func (f *Failure) Error() string {
	s := f.Op + ": " + f.Decision.Class.String()
	if f.Decision.Reason != "" {
		s += " (" + f.Decision.Reason + ")"
	}
	if f.Unsent {
		s += ", not sent"
	} else {
		s += fmt.Sprintf(" after %d tries", f.Tries)
	}
	if f.Cause != nil {
		s += ": " + f.Cause.Error()
	}
	return s
}

// Unwrap gives the cause, so that errors.Is finds the context's error.
func (f *Failure) Unwrap() error { return f.Cause }

var (
	// ErrTryTimeout is the Cause when the last try took longer than its
	// timeout. The call's own context had time left.
	ErrTryTimeout = errors.New("the try took longer than its timeout")

	// ErrBudget is the Cause when a further try was due and the client's
	// retry budget was empty.
	ErrBudget = errors.New("the retry budget is empty")

	// ErrGate is the Cause when a call waited its full time behind the gate or
	// the pause and the server did not come back.
	ErrGate = errors.New("the server did not come back while the call waited for it")

	// ErrServerWait is the Cause when the server asks for a longer wait than
	// the policy allows.
	ErrServerWait = errors.New("the server asks for a longer wait than allowed")
)

// deadlineError says that a wait was not begun because the context would end
// inside it. It is a context.DeadlineExceeded that came early.
type deadlineError struct {
	wait time.Duration
	err  error // context.DeadlineExceeded
}

func (e *deadlineError) Error() string {
	return fmt.Sprintf("a wait of %v would exceed the deadline", e.wait.Round(time.Millisecond))
}

func (e *deadlineError) Unwrap() error { return e.err }
