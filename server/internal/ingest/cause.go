package ingest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/internal/transport"
)

// reasonOf says why a record came to its end, in words without its text and
// without an address, whose path names end users.
func reasonOf(verdict string, err error) string {
	var e *memwrite.Error
	if !errors.As(err, &e) {
		if err != nil {
			return err.Error()
		}
		return verdict
	}
	cause := causeOf(err)
	switch {
	case cause != "" && e.Kind == memwrite.KindUnknownOutcome:
		return "no answer came: " + cause
	case cause != "" && e.Status == 0:
		return e.Kind.String() + ": " + cause
	case e.Message != "" && !strings.Contains(verdict, e.Message):
		return verdict + ": " + e.Message
	}
	return verdict
}

// causeOf is the class of a failed connection, or "".
func causeOf(err error) string {
	var (
		host    *net.DNSError
		cert    *tls.CertificateVerificationError
		unknown x509.UnknownAuthorityError
		header  tls.RecordHeaderError
		slow    net.Error
	)
	switch {
	case errors.As(err, &host):
		return "the host's name is not known"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection closed before the answer was whole"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "the host is not reached"
	case errors.As(err, &cert), errors.As(err, &unknown):
		return "the server's certificate is not trusted"
	case errors.As(err, &header):
		return "the server does not speak TLS"
	case errors.Is(err, transport.ErrGate):
		return "the service failed too often just before, so it was left in peace"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, transport.ErrTryTimeout), errors.As(err, &slow) && slow.Timeout():
		return "timed out"
	}
	return ""
}
