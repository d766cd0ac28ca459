// A worker on River in PostgreSQL, and an application that inserts a write in
// the transaction of its own row.
package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/contrib/riverworker"
	"github.com/memwrite/memwrite-go/worker"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		slog.Error("the worker ended", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	client, err := memwrite.New(memwrite.FromEnvironment())
	if err != nil {
		return err
	}
	defer client.Close()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer pool.Close()
	driver := riverpgxv5.New(pool) // riversqlite.New(db) for SQLite; the rest is the same
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	w, err := riverworker.New(client, riverworker.Config{Worker: worker.Config{Logger: slog.Default()}})
	if err != nil {
		return err
	}
	settings := &river.Config{}
	if err := w.Setup(settings); err != nil {
		return err
	}
	jobs, err := river.NewClient(driver, settings)
	if err != nil {
		return err
	}
	return riverworker.Run(ctx, jobs, w)
}

// saveNote keeps a note and its write, or neither: the write survives a crash
// of the application, and a note that is rolled back is never written.
func saveNote(ctx context.Context, pool *pgxpool.Pool, jobs *river.Client[pgx.Tx], id, customer, text string) error {
	record, err := json.Marshal(map[string]any{"kind": "note", "id": id, "end_user": customer, "text": text})
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO notes (id, customer, text) VALUES ($1, $2, $3)`, id, customer, text); err != nil {
			return err
		}
		_, err := jobs.InsertTx(ctx, tx, riverworker.NewArgs(record), nil)
		return err
	})
}

var _ = saveNote // called where your application saves a note
