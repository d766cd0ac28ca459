package riverworker_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/contrib/riverworker"
	"github.com/memwrite/memwrite-go/worker"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
	_ "modernc.org/sqlite"
)

// queue is a River queue in one of the two databases, with a table of the
// application beside it.
type queue interface {
	// worker runs until ctx ends.
	work(ctx context.Context, client *memwrite.Client, cfg worker.Config) error
	// save writes a row of the application and the record in one transaction,
	// and rolls both back when keep is false.
	save(ctx context.Context, data []byte, keep bool) error
	send(ctx context.Context, data []byte) error
	dead(ctx context.Context) ([]worker.DeadLetter, error)
	inFlight(ctx context.Context) (int, error)
	rows(ctx context.Context) (int, error)
}

// settings are waits a test can sit through.
func settings(w *riverworker.Worker) (*river.Config, error) {
	c := &river.Config{
		FetchCooldown: 20 * time.Millisecond, FetchPollInterval: 100 * time.Millisecond,
		JobTimeout: time.Second, Logger: slog.New(slog.DiscardHandler),
	}
	if w == nil {
		return c, nil
	}
	c.RescueStuckJobsAfter = w.Timeout(nil)
	return c, w.Setup(c)
}

func runOn[TTx any](ctx context.Context, driver riverdriver.Driver[TTx], client *memwrite.Client, cfg worker.Config) error {
	w, err := riverworker.New(client, riverworker.Config{Worker: cfg})
	if err != nil {
		return err
	}
	set, err := settings(w)
	if err != nil {
		return err
	}
	jobs, err := river.NewClient(driver, set)
	if err != nil {
		return err
	}
	return riverworker.Run(ctx, jobs, w)
}

func letters[TTx any](ctx context.Context, jobs *river.Client[TTx]) ([]worker.DeadLetter, error) {
	list, err := jobs.JobList(ctx, river.NewJobListParams().States(rivertype.JobStateCancelled).First(10_000))
	if err != nil {
		return nil, err
	}
	var out []worker.DeadLetter
	for _, job := range list.Jobs {
		letter, ok := riverworker.DeadLetterOf(job)
		if !ok {
			return nil, fmt.Errorf("job %d is cancelled and carries no dead letter", job.ID)
		}
		out = append(out, letter)
	}
	return out, nil
}

// open are the jobs that have no end, and those that River gave up by itself.
const open = `SELECT count(*) FROM river_job WHERE state NOT IN ('completed', 'cancelled')`

type postgres struct {
	pool *pgxpool.Pool
	jobs *river.Client[pgx.Tx]
}

// postgresURL is a database of this test's own on the running server.
func postgresURL(t *testing.T) string {
	t.Helper()
	base := serverURL(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	admin, err := pgx.Connect(ctx, base)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	name := fmt.Sprintf("memwrite_river_%d_%d", os.Getpid(), time.Now().UnixNano())
	if _, err := admin.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		if admin, err := pgx.Connect(ctx, base); err == nil {
			defer admin.Close(ctx)
			_, _ = admin.Exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)")
		}
	})
	cfg, err := pgx.ParseConfig(base)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("postgres://%s:%s@%s:%d/%s?sslmode=disable", cfg.User, cfg.Password, cfg.Host, cfg.Port, name)
}

func openPostgres(t *testing.T, url string, fresh bool) *postgres {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if fresh {
		migrate(t, riverpgxv5.New(pool))
		if _, err := pool.Exec(t.Context(), `CREATE TABLE notes (text TEXT NOT NULL)`); err != nil {
			t.Fatal(err)
		}
	}
	set, _ := settings(nil)
	jobs, err := river.NewClient(riverpgxv5.New(pool), set)
	if err != nil {
		t.Fatal(err)
	}
	return &postgres{pool, jobs}
}

func migrate[TTx any](t *testing.T, driver riverdriver.Driver[TTx]) {
	t.Helper()
	m, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		_, err = m.Migrate(t.Context(), rivermigrate.DirectionUp, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (p *postgres) work(ctx context.Context, client *memwrite.Client, cfg worker.Config) error {
	return runOn(ctx, riverpgxv5.New(p.pool), client, cfg)
}

func (p *postgres) save(ctx context.Context, data []byte, keep bool) error {
	tx, err := p.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, `INSERT INTO notes (text) VALUES ($1)`, string(data)); err != nil {
		return err
	}
	if _, err := p.jobs.InsertTx(ctx, tx, riverworker.NewArgs(data), nil); err != nil || !keep {
		return err
	}
	return tx.Commit(ctx)
}

func (p *postgres) send(ctx context.Context, data []byte) error {
	_, err := p.jobs.Insert(ctx, riverworker.NewArgs(data), nil)
	return err
}

func (p *postgres) dead(ctx context.Context) ([]worker.DeadLetter, error) {
	return letters(ctx, p.jobs)
}

func (p *postgres) inFlight(ctx context.Context) (n int, err error) {
	return n, p.pool.QueryRow(ctx, open).Scan(&n)
}

func (p *postgres) rows(ctx context.Context) (n int, err error) {
	return n, p.pool.QueryRow(ctx, `SELECT count(*) FROM notes`).Scan(&n)
}

type sqlite struct {
	db   *sql.DB
	jobs *river.Client[*sql.Tx]
}

func openSQLite(t *testing.T, path string, fresh bool) *sqlite {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(10000)&_pragma=synchronous(NORMAL)&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	if fresh {
		migrate(t, riversqlite.New(db))
		if _, err := db.ExecContext(t.Context(), `CREATE TABLE notes (text TEXT NOT NULL)`); err != nil {
			t.Fatal(err)
		}
	}
	set, _ := settings(nil)
	jobs, err := river.NewClient(riversqlite.New(db), set)
	if err != nil {
		t.Fatal(err)
	}
	return &sqlite{db, jobs}
}

func (s *sqlite) work(ctx context.Context, client *memwrite.Client, cfg worker.Config) error {
	return runOn(ctx, riversqlite.New(s.db), client, cfg)
}

func (s *sqlite) save(ctx context.Context, data []byte, keep bool) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, `INSERT INTO notes (text) VALUES (?)`, string(data)); err != nil {
		return err
	}
	if _, err := s.jobs.InsertTx(ctx, tx, riverworker.NewArgs(data), nil); err != nil || !keep {
		return err
	}
	return tx.Commit()
}

func (s *sqlite) send(ctx context.Context, data []byte) error {
	_, err := s.jobs.Insert(ctx, riverworker.NewArgs(data), nil)
	return err
}

func (s *sqlite) dead(ctx context.Context) ([]worker.DeadLetter, error) { return letters(ctx, s.jobs) }

func (s *sqlite) inFlight(ctx context.Context) (n int, err error) {
	return n, s.db.QueryRowContext(ctx, open).Scan(&n)
}

func (s *sqlite) rows(ctx context.Context) (n int, err error) {
	return n, s.db.QueryRowContext(ctx, `SELECT count(*) FROM notes`).Scan(&n)
}

// onBoth runs a test on each database.
func onBoth(t *testing.T, f func(t *testing.T, q queue)) {
	t.Run("postgres", func(t *testing.T) { t.Parallel(); f(t, openPostgres(t, postgresURL(t), true)) })
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		f(t, openSQLite(t, filepath.Join(t.TempDir(), "queue.db"), true))
	})
}

// run works off a queue until stop is called.
func run(t *testing.T, q queue, client *memwrite.Client, cfg worker.Config) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- q.work(ctx, client, cfg) }()
	stop = func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		done <- nil
	}
	t.Cleanup(stop)
	return stop
}

func note(id, text string) []byte {
	data, _ := json.Marshal(map[string]any{"kind": "note", "id": id, "end_user": "acme", "text": text})
	return data
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}
