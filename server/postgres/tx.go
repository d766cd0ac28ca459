package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
)

const (
	// tries bounds how often one transaction is begun anew after a failure
	// that says nothing about what it wants: a deadlock, a lost connection.
	tries = 6
	// patience bounds one transaction, so that a server that does not answer
	// holds nobody for ever.
	patience = 15 * time.Second
)

// settings hold for one transaction, and so work behind a pooler. A peer that
// stands still with a transaction open lets its locks go; an answer is never
// sent before the disk has it, whatever the role's own setting says.
const settings = `select set_config('lock_timeout', '5s', true), set_config('idle_in_transaction_session_timeout', '10s', true),
	case when current_setting('synchronous_commit') = 'off' then set_config('synchronous_commit', 'on', true) end`

// errOutcomeUnknown: the connection was lost while the commit was under way.
var errOutcomeUnknown = errors.New("postgres: the connection was lost during a commit, which may have happened")

// tx is one transaction as pipelined rounds: what one round learns decides what
// the next one sends. Beginning and ending cost no round of their own.
type tx struct {
	conn  *pgxpool.Conn
	begun bool
	done  bool
}

// round sends statements together and hands out their results in order.
func (t *tx) round(ctx context.Context, queue func(*pgx.Batch)) error {
	b := t.batch()
	queue(b)
	return t.conn.SendBatch(ctx, b).Close()
}

func (t *tx) batch() *pgx.Batch {
	b := &pgx.Batch{}
	if !t.begun {
		b.Queue("begin isolation level read committed")
		b.Queue(settings)
		t.begun = true
	}
	return b
}

// commit is the last round. Nothing is sent when queue fails.
func (t *tx) commit(ctx context.Context, queue func(*pgx.Batch) error) error {
	b := t.batch()
	if err := queue(b); err != nil {
		return err
	}
	b.Queue("commit").Exec(func(tag pgconn.CommandTag) error {
		if tag.String() != "COMMIT" {
			return errFence
		}
		t.done = true
		return nil
	})
	return unknown(t.conn.SendBatch(ctx, b).Close())
}

// unknown marks what kept a commit from being confirmed. What the server refused
// it has not done.
func unknown(err error) error {
	var said *pgconn.PgError
	if err != nil && !errors.Is(err, errFence) && (!errors.As(err, &said) || shutdown(said)) {
		return errors.Join(errOutcomeUnknown, err)
	}
	return err
}

// transact runs f in a transaction of its own, again after a failure that lets
// it. f ends with tx.commit or is rolled back.
func (s *Store) transact(ctx context.Context, f func(context.Context, *tx) error) error {
	// A caller that goes away leaves the transaction to its end: half of it may
	// be another caller's.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	return s.again(ctx, func() error { return s.attempt(ctx, f) })
}

// again does f once more after a failure that may be gone by then.
func (s *Store) again(ctx context.Context, f func() error) error {
	var err error
	for try := range tries {
		if try > 0 {
			wait := 20 * time.Millisecond << (try - 1)
			if sched.Sleep(ctx, s.sched, wait/2+sched.Jitter(s.sched, wait)) != nil {
				return err
			}
		}
		if err = f(); err == nil || !passing(err) {
			break
		}
	}
	return err
}

func (s *Store) attempt(ctx context.Context, f func(context.Context, *tx) error) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	t := &tx{conn: conn}
	err = f(ctx, t)
	if t.begun && !t.done && !conn.Conn().IsClosed() {
		_, _ = conn.Exec(ctx, "rollback") // Release closes a connection it did not help
	}
	return err
}

// passing says that a failure may be gone at the next try, and that nothing of
// this one was kept.
func passing(err error) bool {
	if errors.Is(err, errOutcomeUnknown) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var said *pgconn.PgError
	if errors.As(err, &said) {
		switch said.Code {
		case "40001", "40P01", "55P03": // serialization failure, deadlock, lock timeout
			return true
		}
		return shutdown(said)
	}
	var connect *pgconn.ConnectError
	return errors.As(err, &connect) || lost(err)
}

// shutdown says that the server ended the session rather than the statement.
func shutdown(e *pgconn.PgError) bool {
	switch e.Code {
	case "57P01", "57P02", "57P03", "53300", "25P03": // shut down, crashed, starting, too many, idle too long
		return true
	}
	return len(e.Code) == 5 && e.Code[:2] == "08"
}

// refused says that the rows themselves were refused: by a unique index, a
// check, or because they cannot be written down.
func refused(err error) bool {
	if errors.Is(err, protocol.ErrInvariant) {
		return true
	}
	var said *pgconn.PgError
	return errors.As(err, &said) && (said.Code == "23505" || said.Code == "23514" || said.Code == "23502")
}
