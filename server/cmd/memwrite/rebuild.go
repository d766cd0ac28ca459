package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/memwrite/memwrite-go/server/postgres"
	"github.com/memwrite/memwrite-go/server/sqlite"
	"github.com/memwrite/memwrite-go/server/vector"
)

// rebuildCommand makes the vectors of a store anew.
func rebuildCommand() *cobra.Command {
	var db, url string
	cmd := &cobra.Command{
		Use:   "rebuild",
		Short: "Make the vectors of a store anew from its records: of a SQLite file while no server uses it, of a database at any time",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			named := cmd.Flags().Changed("db") && !cmd.Flags().Changed("database-url")
			if err := settle(cmd.Flags(), os.Getenv, ""); err != nil {
				return err
			}
			if url != "" && !named {
				return rebuildDatabase(cmd.Context(), cmd.OutOrStdout(), url)
			}
			return rebuildFile(cmd.Context(), cmd.OutOrStdout(), db)
		},
	}
	cmd.Flags().StringVar(&db, "db", defaultDB(), "the `file` serve uses")
	cmd.Flags().StringVar(&url, "database-url", "", "the `URL` of the database that nodes share, in place of the file")
	return cmd
}

func rebuildFile(ctx context.Context, out io.Writer, db string) (err error) {
	if _, err := os.Stat(db); err != nil {
		return fmt.Errorf("--db: %w", err) // opening would make one
	}
	s, err := sqlite.Open(ctx, db, sqlite.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := vector.Discard(vectorsOf(db)); err != nil {
		return err
	}
	x, err := fileIndex(ctx, db, s)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d records are in %s\n", x.Len(), vectorsOf(db))
	return nil
}

// rebuildDatabase rebuilds the vectors in the database, if there are any, and
// tells nodes that keep some in memory to do the same.
func rebuildDatabase(ctx context.Context, out io.Writer, url string) (err error) {
	s, err := postgres.Open(ctx, postgres.Options{URL: url, Connections: 2})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	n, err := s.RebuildVectors(ctx)
	if err != nil {
		return err
	}
	if err := s.Rebuilt(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d records are in the database's vectors; nodes with vectors in memory make those anew\n", n)
	return nil
}
