package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
)

// Options are what a store is opened with; the zero value has the defaults.
type Options struct {
	// URL is postgres://user:password@host/database, with the parameters of
	// pgx and libpq. Settings of the environment (PGHOST, …) fill in.
	URL string
	// Connections bounds how many this node holds at once; 10.
	Connections int
	// Scheduler is the node's own clock and goroutines; sched.Real.
	Scheduler sched.Scheduler
	// CallerClock lets the times that callers pass be the truth instead of the
	// database's clock: for tests on a clock of their own.
	CallerClock bool
	// FirstNumber is the number of a new database's first MemorySync record; 1.
	FirstNumber int64
}

// Store is a protocol.Store that many nodes may open at once.
type Store struct {
	pool        *pgxpool.Pool
	sched       sched.Scheduler
	clock       *Clock
	callerClock bool
	accepts     *group[proposal, accepted]
	steps       *group[*protocol.WriteSet, *protocol.Task]
	seen        seen
	spaces      seen
	rows        kept
	hopes       struct{ accepts, steps hope }
	types       atomic.Pointer[[]rowType]
}

var _ protocol.Store = (*Store)(nil)

var zero time.Time

// Open connects, brings the schema up to date (nodes that start together wait
// for the one that does) and reads the clock.
//
// Errors say what to do; none holds the password.
func Open(ctx context.Context, o Options) (*Store, error) {
	cfg, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return nil, errors.New("postgres: the database URL cannot be read: it has the form postgres://user:password@host:5432/database")
	}
	// A pooler may give each transaction another session, which knows no
	// statement that was prepared in a former one.
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	cfg.MaxConns = 10
	if o.Connections > 0 {
		cfg.MaxConns = int32(o.Connections)
	}
	if o.Scheduler == nil {
		o.Scheduler = sched.Real()
	}
	s := &Store{sched: o.Scheduler, callerClock: o.CallerClock}
	cfg.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		if types := s.types.Load(); types != nil {
			for _, t := range *types {
				t.register(conn)
			}
		}
		return nil
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, connectError(err)
	}
	s.accepts = newGroup(o.Scheduler, s.acceptBatch)
	s.steps = newGroup(o.Scheduler, s.applyBatch)
	if err := s.prepare(ctx, o.FirstNumber); err != nil {
		s.pool.Close()
		return nil, connectError(err)
	}
	return s, nil
}

func (s *Store) prepare(ctx context.Context, first int64) error {
	var err error
	if err = s.durable(ctx); err != nil {
		return err
	}
	if err = s.migrate(ctx, first); err != nil {
		return err
	}
	types, err := readRowTypes(ctx, s.pool)
	if err != nil {
		return err
	}
	s.types.Store(&types)
	s.pool.Reset() // connections from now on know them
	s.clock, err = newClock(ctx, s.pool, s.sched)
	return err
}

// durable refuses a server that answers before the disk has what it answers
// about. (synchronous_commit is set in each transaction.)
func (s *Store) durable(ctx context.Context) error {
	var fsync string
	if err := s.pool.QueryRow(ctx, `select current_setting('fsync')`).Scan(&fsync); err != nil {
		return err
	}
	if fsync == "off" {
		return errors.New("postgres: the server runs with fsync off and may lose what it has confirmed: switch it on")
	}
	return nil
}

//go:embed migrations/*.sql
var migrations embed.FS

func (s *Store) migrate(ctx context.Context, first int64) error {
	// A row rather than a lock of the session: a pooler has no sessions to lock.
	locker, err := lock.NewPostgresTableLocker(lock.WithTableName("memwrite_migration_lock"), lock.WithTableLockTimeout(100*time.Millisecond, 3000))
	if err != nil {
		return err
	}
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	db := stdlib.OpenDB(*s.pool.Config().ConnConfig) // it holds two at once, which the pool may not have
	defer db.Close()
	p, err := goose.NewProvider(goose.DialectPostgres, db, dir, goose.WithLocker(locker), goose.WithTableName("memwrite_migrations"), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	have, newest, err := p.GetVersions(ctx)
	if err == nil && have > newest {
		return fmt.Errorf("postgres: the database has schema %d and this program knows %d: start a newer memwrite, or give it another database", have, newest)
	}
	if err == nil && have == newest {
		return nil
	}
	made, err := p.Up(ctx)
	if err != nil {
		return fmt.Errorf("postgres: the schema cannot be brought up to date: %w", err)
	}
	if len(made) > 0 && have == 0 && first > 1 {
		_, err = s.pool.Exec(ctx, `select setval('record_numbers', $1, false)`, first)
	}
	return err
}

// Clock is the database's clock, for the node's engine; see Clock.
func (s *Store) Clock() sched.Scheduler { return s.clock }

// Close lets the connections go. Calls that are under way end first.
func (s *Store) Close() error {
	s.accepts.close()
	s.steps.close()
	s.clock.close()
	s.pool.Close()
	return nil
}

// connectError leaves out what the error of a connection says about how it was
// configured.
func connectError(err error) error {
	var connect *pgconn.ConnectError
	var said *pgconn.PgError
	switch {
	case errors.As(err, &said):
		return fmt.Errorf("postgres: the server refused (%s): %s", said.Code, said.Message)
	case errors.As(err, &connect):
		return fmt.Errorf("postgres: no connection to %s: %w", connect.Config.Host, errors.Unwrap(err))
	}
	return err
}

// seen is a bounded memory of ids that stay true once they are.
type seen struct {
	mu  sync.RWMutex
	ids map[string]bool
}

func (s *seen) has(id string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.ids[id]
}

func (s *seen) add(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids == nil || len(s.ids) > 100_000 {
		s.ids = map[string]bool{}
	}
	s.ids[id] = true
}
