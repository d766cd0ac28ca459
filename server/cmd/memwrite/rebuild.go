package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/sqlite"
	"github.com/memwrite/memwrite-go/server/vector"
)

// vectorsOf is the folder of a SQLite file's vectors.
func vectorsOf(db string) string { return db + ".vectors" }

// checkVector refuses an index that would lie: the embedded one knows what its
// own process wrote, and a database is written by many.
func (c *config) checkVector() error {
	switch {
	case c.vector != "off" && c.vector != "embedded":
		return fmt.Errorf("--vector %s: want off or embedded", c.vector)
	case c.vector == "embedded" && c.databaseURL != "":
		return errors.New("--vector embedded is the index of one process, and nodes that share a database do not see each other's: leave it off with --database-url")
	}
	return nil
}

// openIndex is the index of a SQLite store, brought up to its records.
func openIndex(ctx context.Context, db string, s *sqlite.Store) (*vector.Index, error) {
	x, err := vector.Open(ctx, vectorsOf(db))
	if err != nil {
		return nil, err
	}
	err = x.Reconcile(ctx, func(f func(protocol.Record) error) error { return s.EachLive(ctx, time.Now(), f) })
	return x, err
}

// rebuildCommand makes the index of a SQLite file anew.
func rebuildCommand() *cobra.Command {
	var db string
	cmd := &cobra.Command{
		Use:   "rebuild",
		Short: "Throw the vectors of a SQLite file away and make them anew from its records, while no server uses it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if _, err := os.Stat(db); err != nil {
				return fmt.Errorf("--db: %w", err) // opening would make one
			}
			s, err := sqlite.Open(cmd.Context(), db, sqlite.Options{})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.Close()) }()
			if err := vector.Discard(vectorsOf(db)); err != nil {
				return err
			}
			x, err := openIndex(cmd.Context(), db, s)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d records are in %s\n", x.Len(), vectorsOf(db))
			return nil
		},
	}
	cmd.Flags().StringVar(&db, "db", defaultDB(), "the `file` serve uses")
	return cmd
}
