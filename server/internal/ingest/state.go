package ingest

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	_ "modernc.org/sqlite" // the state's file format

	"github.com/memwrite/memwrite-go/worker"
)

// state remembers the records of a file. All calls come from one goroutine.
type state struct {
	db     *sql.DB
	tx     *sql.Tx
	run    int64
	seen   *sql.Stmt
	put    *sql.Stmt
	finish *sql.Stmt
	move   *sql.Stmt
}

// known is what a state has of a record.
type known struct {
	line  int
	text  []byte
	run   int64
	ended string // "" while it has not
}

// openState opens or makes a state file. One program at a time has it.
func openState(ctx context.Context, path string) (*state, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	dsn := (&url.URL{Scheme: "file", Path: abs}).String() +
		"?_pragma=busy_timeout(1000)&_pragma=locking_mode(EXCLUSIVE)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=cache_size(-8000)&_txlock=immediate"
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	s := &state{db: db}
	if err := s.begin(ctx); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("the state %s cannot be used (is another ingest at work on it?): %w", path, err)
	}
	for _, q := range []string{
		`CREATE TABLE IF NOT EXISTS records (identity BLOB PRIMARY KEY, text BLOB NOT NULL, line INTEGER NOT NULL, run INTEGER NOT NULL, ended TEXT NOT NULL DEFAULT '') WITHOUT ROWID`,
		`CREATE TABLE IF NOT EXISTS runs (run INTEGER PRIMARY KEY, report INTEGER NOT NULL DEFAULT 0)`,
		`INSERT INTO runs DEFAULT VALUES`,
	} {
		if _, err := s.tx.ExecContext(ctx, q); err != nil {
			s.abandon()
			return nil, fmt.Errorf("%s is not a state file: %w", path, err)
		}
	}
	if err := s.tx.QueryRowContext(ctx, `SELECT max(run) FROM runs`).Scan(&s.run); err != nil {
		s.abandon()
		return nil, err
	}
	if err := s.commit(ctx); err != nil {
		s.abandon()
		return nil, err
	}
	return s, nil
}

func (s *state) begin(ctx context.Context) (err error) {
	if s.tx, err = s.db.BeginTx(ctx, nil); err != nil {
		return err
	}
	return nil
}

// commit makes what was remembered so far last.
func (s *state) commit(ctx context.Context) error {
	if err := s.tx.Commit(); err != nil {
		return err
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	for q, stmt := range map[string]**sql.Stmt{
		`SELECT line, text, run, ended FROM records WHERE identity = ?`:                             &s.seen,
		`INSERT OR REPLACE INTO records (identity, text, line, run, ended) VALUES (?, ?, ?, ?, '')`: &s.put,
		`UPDATE records SET ended = ? WHERE identity = ?`:                                           &s.finish,
		`UPDATE records SET line = ?, run = ? WHERE identity = ?`:                                   &s.move,
	} {
		var err error
		if *stmt, err = s.tx.PrepareContext(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

func (s *state) abandon() {
	if s.tx != nil {
		_ = s.tx.Rollback()
	}
	_ = s.db.Close()
}

func (s *state) close(ctx context.Context) error {
	err := s.tx.Commit()
	if err == nil {
		_, err = s.db.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
	}
	return errors.Join(err, s.db.Close())
}

func (s *state) find(ctx context.Context, identity []byte) (known, bool, error) {
	var k known
	err := s.seen.QueryRowContext(ctx, identity).Scan(&k.line, &k.text, &k.run, &k.ended)
	if errors.Is(err, sql.ErrNoRows) {
		return k, false, nil
	}
	return k, err == nil, err
}

func (s *state) meet(ctx context.Context, identity, text []byte, line int) error {
	_, err := s.put.ExecContext(ctx, identity, text, line, s.run)
	return err
}

// again marks a record that an earlier run has ended as met in this one.
func (s *state) again(ctx context.Context, identity []byte, line int) error {
	_, err := s.move.ExecContext(ctx, line, s.run, identity)
	return err
}

func (s *state) end(ctx context.Context, identity []byte, ended string) error {
	_, err := s.finish.ExecContext(ctx, ended, identity)
	return err
}

// reportSize is where the report ended when the state was last made to last.
func (s *state) reportSize(ctx context.Context) (n int64, err error) {
	err = s.tx.QueryRowContext(ctx, `SELECT coalesce(max(report), 0) FROM runs`).Scan(&n)
	return n, err
}

func (s *state) setReportSize(ctx context.Context, n int64) error {
	_, err := s.tx.ExecContext(ctx, `UPDATE runs SET report = ? WHERE run = ?`, n, s.run)
	return err
}

// fingerprint is a record's identity, and what must not change under it.
func fingerprint(r worker.Record) (identity, text []byte) {
	var of, what []string
	switch {
	case r.Add != nil:
		of, what = []string{"add", r.Add.EndUserID, r.Add.Ref.String()}, []string{r.Add.Text}
	case r.Turn != nil: // its text is part of what it is
		of = []string{"turn", r.Turn.UserID, r.Turn.Speaker, r.Turn.OccurredAt, r.Turn.Text}
	default:
		command := *r.Infer
		all, _ := json.Marshal([]any{command.Scope, command.Content, command.Messages, command.EventDate, command.Metadata, r.Verbatim})
		of, what = []string{"key", command.Key.String()}, []string{string(all)}
	}
	return digest(of), digest(what)
}

func digest(parts []string) []byte {
	all, _ := json.Marshal(parts)
	sum := sha256.Sum256(all)
	return sum[:16]
}
