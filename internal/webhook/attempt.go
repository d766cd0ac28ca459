package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
)

// Attempt is one that ended. It can be logged: of the target it has the host
// alone, since a path or a query may be a password.
type Attempt struct {
	Delivery        // State Waiting: it failed, and another is due at Next
	Host     string // and port, of the target
	Most     int    // attempts there are
	Err      error  // why no answer came; nil when one did
}

// hostOf is the host and port of a URL.
func hostOf(target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return ""
	}
	return u.Host
}

var (
	errURL    = errors.New("the URL is none")
	errTime   = errors.New("no answer in time")
	errAnswer = errors.New("no whole HTTP answer came")
)

// causeOf says why no answer came. What net/http says itself quotes the URL, or
// what it could not read.
func causeOf(ctx context.Context, err error) error {
	var (
		timed net.Error
		wire  *net.OpError
		cert  *tls.CertificateVerificationError
	)
	switch {
	case ctx.Err() != nil, errors.As(err, &timed) && timed.Timeout():
		return errTime
	case errors.As(err, &wire):
		return wire
	case errors.As(err, &cert):
		return cert
	}
	return errAnswer
}
