// Package sqlite keeps everything in one SQLite file: the store of a single
// machine. A write is on the disk before it is answered.
//
// One connection writes, under group commit: writes that wait for each other
// share a transaction, and so a sync, each with a savepoint of its own, so that
// one that is refused does not take its neighbours with it. Other connections
// read, each at a moment of its own.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"modernc.org/sqlite"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/server/internal/company"
	"github.com/memwrite/memwrite-go/server/internal/doc"
	"github.com/memwrite/memwrite-go/server/internal/gather"
)

// Store is a protocol.Store on one file, which it has for itself.
type Store struct {
	path    string
	lock    *os.File
	readers *sql.DB  // of lists
	quick   *readers // of a few rows

	queue   queue
	tx      tx // the writer's; held by whoever leads a group
	folding folding
	numbers numbers

	workspaces workspaces
	fresh      fresh
	mu         sync.Mutex
	prepared   map[string]*sql.Stmt // of the readers
}

var _ protocol.Store = (*Store)(nil)

// Options settle how a store is opened.
type Options struct {
	// FirstNumber is the first number given to a MemorySync record of a new
	// file; 1.
	FirstNumber int64
	// SkipCheck leaves out the integrity check, which reads the whole file.
	SkipCheck bool
	// Readers is how many reads of a kind run at once, lists and single rows; 4.
	Readers int
	// Scheduler is the clock that a group of writes is gathered by, and a file in
	// use waited for; the machine's.
	Scheduler sched.Scheduler
	// VFS is the name of a registered SQLite VFS; the operating system's.
	VFS string
}

// Open opens the file, or makes it with its folder, and brings it to the schema
// of this version. A file in use is waited for, a second at most. The error says
// what to do: another process has the file, it
// was written by a newer version, the disk is read-only or full, or the file is
// damaged. Options are the zero value for their defaults.
func Open(ctx context.Context, path string, o Options) (_ *Store, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, opening(path, err)
	}
	if o.Scheduler == nil {
		o.Scheduler = sched.Real()
	}
	lock, err := waitFor(ctx, path+".lock", o.Scheduler)
	if err != nil {
		return nil, opening(path, err)
	}
	s := &Store{path: path, lock: lock, prepared: map[string]*sql.Stmt{}, queue: queue{company: company.New(o.Scheduler, 2)}, numbers: numbers{last: -1}}
	defer func() {
		if err != nil {
			_ = s.Close()
			err = opening(path, err)
		}
	}()
	// The file holds memory text: it is made for its owner alone.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	// A commit is as durable with fdatasync(2), and need not wait for the file's
	// times. The switch is the process's; where there is none, fsync(2) stays.
	if _, err := sqlite.Fdatasync(true); err != nil && !errors.Is(err, sqlite.ErrFdatasyncUnavailable) {
		return nil, err
	}
	if o.VFS, err = gather.Over(o.VFS); err != nil {
		return nil, err
	}
	// Foreign keys stay off: a migration makes tables anew that others name, and the
	// writer itself looks at what a row belongs to, once.
	pragmas := []string{"busy_timeout(2000)", "journal_mode(WAL)", "synchronous(FULL)", "secure_delete(ON)",
		"temp_store(MEMORY)", "cache_size(-8192)", "wal_autocheckpoint(10000)"}
	if err := prepareFile(ctx, dsn(path, o.VFS, pragmas...), o); err != nil {
		return nil, err
	}
	connector, err := sqlite.NewConnector(dsn(path, o.VFS, pragmas...))
	if err != nil {
		return nil, err
	}
	conn, err := connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	s.tx = newTx(conn)
	if err := s.durable(); err != nil {
		return nil, err
	}
	if err := s.tx.learn(moreTopics); err != nil {
		return nil, err
	}
	if conn, err = connector.Connect(ctx); err != nil {
		return nil, err
	}
	s.folding.conn = newTx(conn)
	reader := dsn(path, o.VFS, "busy_timeout(2000)", "query_only(ON)", "temp_store(MEMORY)")
	if s.readers, err = sql.Open("sqlite", reader); err != nil {
		return nil, err
	}
	if o.Readers <= 0 {
		o.Readers = 4
	}
	s.quick = newReaders(reader, o.Readers)
	s.readers.SetMaxOpenConns(o.Readers)
	s.readers.SetMaxIdleConns(o.Readers)
	return s, nil
}

// patience is how long Open waits for a file that is in use. A process that is
// ending, or one that was forked while the file was open and has not yet become
// another program, holds it for a moment more.
const patience = time.Second

// waitFor takes the file, or says that it stays in use.
func waitFor(ctx context.Context, path string, s sched.Scheduler) (*os.File, error) {
	until := s.Now().Add(patience)
	for {
		lock, err := acquire(path)
		if !errors.Is(err, ErrInUse) || !s.Now().Before(until) {
			return lock, err
		}
		if err := sched.Sleep(ctx, s, patience/50); err != nil {
			return nil, err
		}
	}
}

// prepareFile checks the file and brings it to the schema of this version.
func prepareFile(ctx context.Context, dsn string, o Options) error {
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if !o.SkipCheck {
		if err := check(ctx, db); err != nil {
			return err
		}
	}
	if err := migrate(ctx, db); err != nil {
		return err
	}
	if o.FirstNumber > 1 {
		_, err = db.ExecContext(ctx, `UPDATE number SET last = ? WHERE last = 0`, o.FirstNumber-1)
	}
	return err
}

// durable asserts that a commit is on the disk when it returns, and that what
// is deleted is overwritten.
func (s *Store) durable() error {
	var journal string
	var synchronous, secure int64
	for _, p := range []struct {
		q    string
		dest any
	}{{`PRAGMA journal_mode`, &journal}, {`PRAGMA synchronous`, &synchronous}, {`PRAGMA secure_delete`, &secure}} {
		if err := s.tx.query(p.q, nil, p.dest); err != nil {
			return err
		}
	}
	if journal != "wal" || synchronous < 2 || secure != 1 {
		return fmt.Errorf("the file cannot be written safely here: journal_mode %s, synchronous %d, secure_delete %d", journal, synchronous, secure)
	}
	return nil
}

// Close lets the writes that were begun end, folds the log into the file and
// gives the file back. A second call does nothing.
func (s *Store) Close() error {
	var errs []error
	if s.tx.conn != nil {
		errs = append(errs, s.giveBack())
	}
	if !s.queue.close() {
		return nil
	}
	s.fresh.forget()
	if s.readers != nil {
		errs = append(errs, s.readers.Close())
	}
	if s.quick != nil {
		errs = append(errs, s.quick.close())
	}
	errs = append(errs, s.folding.close())
	if s.tx.conn != nil {
		var busy int64
		if err := s.tx.query(`PRAGMA wal_checkpoint(TRUNCATE)`, nil, &busy); err != nil {
			errs = append(errs, err)
		}
		errs = append(errs, s.tx.close())
	}
	errs = append(errs, s.lock.Close())
	return errors.Join(errs...)
}

// Checkpoint folds the log into the file and empties it, so that what was
// redacted is in neither. It gives up for now, with ErrUnavailable, when
// readers hold on to the log.
func (s *Store) Checkpoint(ctx context.Context) error {
	return s.queue.alone(ctx, func() error {
		s.folding.going.Wait()
		// Writers wait behind this, so it does not wait for readers for long.
		if err := s.tx.plain(`PRAGMA busy_timeout = 50`); err != nil {
			return failed(err)
		}
		var busy int64
		err := s.tx.query(`PRAGMA wal_checkpoint(TRUNCATE)`, nil, &busy)
		if err := errors.Join(err, failed(s.tx.plain(`PRAGMA busy_timeout = 2000`))); err != nil {
			return err
		}
		if busy != 0 {
			return fmt.Errorf("%w: a reader holds on to the log", protocol.ErrUnavailable)
		}
		return nil
	})
}

// PutWorkspace makes or changes a workspace.
func (s *Store) PutWorkspace(ctx context.Context, w protocol.Workspace) error {
	raw, err := doc.OfWorkspace(w)
	if err != nil {
		return err
	}
	s.workspaces.forget()
	defer s.workspaces.forget() // what was read meanwhile too
	return s.write(ctx, func(x *tx) error {
		_, err := x.exec(`INSERT INTO workspace (id, doc) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET doc = excluded.doc`, w.ID, string(raw))
		return err
	})
}

// nanos is a time as a column orders it. What is too far away for it, as a
// record that is kept for 300 years, is as far as it goes.
func nanos(t time.Time) int64 {
	switch y := t.Year(); {
	case y < 1678:
		return math.MinInt64
	case y > 2261:
		return math.MaxInt64
	}
	return t.UnixNano()
}
