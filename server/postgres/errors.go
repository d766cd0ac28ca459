package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// errFence: the transaction was rolled back where it was to be committed.
var errFence = errors.New("postgres: the rows are not the ones that were judged")

var errClosed = fmt.Errorf("%w: it is closed", protocol.ErrUnavailable)

func broken(format string, args ...any) error {
	return fmt.Errorf("%w: %s", protocol.ErrInvariant, fmt.Sprintf(format, args...))
}

// lost says that a connection broke.
func lost(err error) bool {
	var network *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.As(err, &network)
}

// judged puts a failure into the protocol's words. A row that a unique index or
// a check stops would have broken the protocol; a server that is away is a
// store that is not available.
func judged(err error) error {
	var said *pgconn.PgError
	switch {
	case refused(err) && errors.As(err, &said):
		return broken("%s refused a row", said.ConstraintName)
	case errors.Is(err, errOutcomeUnknown), passing(err), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", protocol.ErrUnavailable, err)
	}
	return err
}
