package memwrite

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/memwrite/memwrite-go/internal/transport"
)

// causesOf says why ctx ended: its cause, and how it ended where the cause does
// not tell. An errgroup gives its context the error of another call as cause.
func causesOf(ctx context.Context) []error {
	cause, err := context.Cause(ctx), ctx.Err()
	if errors.Is(cause, err) {
		return []error{cause}
	}
	return []error{cause, err}
}

// endOf is the kind of a call that ended with its context before it was sent.
func endOf(ctx context.Context) Kind {
	if errors.Is(ctx.Err(), context.Canceled) {
		return KindCanceled
	}
	return KindUnknown
}

// scrubber takes out what this call sent.
func (s *service) scrubber(r request) scrubber { return s.hidden(r.texts) }

// hidden takes out the key and texts.
func (s *service) hidden(texts []string) scrubber { return append(scrubber{s.key}, texts...) }

// quiet is a cause in words that repeat nothing of the call: without the
// address, which names end users, and without what net/http quotes of an answer
// it cannot read, which may be anything.
func (s *service) quiet(r request, err error) error {
	err = withoutURL(err)
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	said := err.Error()
	words := said
	if errors.As(err, &op) || errors.As(err, &cert) {
		// The network's own words: hosts, ports and certificates.
	} else if !ownCause(err) {
		words, _, _ = strings.Cut(words, `"`)
		words, _, _ = strings.Cut(words, "header line: ") // quoted without quotes
		words = strings.TrimRight(words, " :")
	}
	if words = clip(oneLine(s.scrubber(r).clean(words)), maxMessage); words == said {
		return err
	}
	return &quietError{words, err}
}

// ownCause tells the causes of the try loop, which quote nothing.
func ownCause(err error) bool {
	for _, own := range []error{context.DeadlineExceeded, transport.ErrTryTimeout, transport.ErrBudget, transport.ErrGate, transport.ErrServerWait} {
		if errors.Is(err, own) {
			return true
		}
	}
	return false
}

// quietError can be matched like the error it stands for, and says less.
type quietError struct {
	words string
	err   error
}

func (e *quietError) Error() string        { return e.words }
func (e *quietError) GoString() string     { return strconv.Quote(e.words) }
func (e *quietError) Is(target error) bool { return errors.Is(e.err, target) }
func (e *quietError) As(target any) bool   { return errors.As(e.err, target) }

// quietEvent takes the key, and texts, out of a service's words about a task.
func (s *service) quietEvent(ev *Event, texts ...string) {
	if ev.Error == "" && ev.ErrorCode == "" && ev.Status.known() {
		return
	}
	clean := s.scrubber(request{texts: texts})
	if !ev.Status.known() {
		ev.Status = EventStatus(clean.clean(string(ev.Status)))
	}
	ev.Error, ev.ErrorCode = clean.clean(ev.Error), clean.clean(ev.ErrorCode)
}

// withoutURL drops the address from net/http's errors: it names end users.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
