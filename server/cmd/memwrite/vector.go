package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/postgres"
	"github.com/memwrite/memwrite-go/server/sqlite"
	"github.com/memwrite/memwrite-go/server/vector"
)

// The settings of --vector.
const (
	vectorOff      = "off"
	vectorAuto     = "auto"
	vectorEmbedded = "embedded"
	vectorPgvector = "pgvector"
)

func (c *config) checkVector() error {
	switch {
	case !slices.Contains([]string{vectorOff, vectorAuto, vectorEmbedded, vectorPgvector}, c.vector):
		return fmt.Errorf("--vector %s: want off, auto, embedded or pgvector", c.vector)
	case c.vector == vectorPgvector && c.databaseURL == "":
		return errors.New("--vector pgvector is an extension of PostgreSQL: give --database-url, or --vector embedded for the SQLite file")
	}
	return nil
}

// vectorsOf is the folder of a SQLite file's vectors.
func vectorsOf(db string) string { return db + ".vectors" }

// fileIndex is the index of a SQLite store, brought up to its records.
func fileIndex(ctx context.Context, db string, s *sqlite.Store) (*vector.Index, error) {
	x, err := vector.Open(ctx, vectorsOf(db))
	if err != nil {
		return nil, err
	}
	err = x.Reconcile(ctx, func(f func(protocol.Record) error) error { return s.EachLive(ctx, time.Now(), f) })
	return x, err
}

// databaseIndex is the index of a node on a database: pgvector where it is there
// and wanted, else one in memory that follows what all nodes write.
func databaseIndex(ctx context.Context, wanted string, s *postgres.Store, log *slog.Logger) (protocol.Projector, error) {
	failed := func(err error) { log.Warn("the vectors lag behind the records", "error", err) }
	switch wanted {
	case vectorOff:
		return nil, nil
	case vectorAuto, vectorPgvector:
		v, err := s.Vectors(ctx, failed)
		if err == nil {
			log.Info("searching through vectors", "in", vectorPgvector)
			return v, nil
		}
		if wanted == vectorPgvector || !errors.Is(err, postgres.ErrNoVectors) {
			return nil, err
		}
		log.Info("the vectors are kept in this node's memory", "because", err)
	}
	if err := s.Follow(ctx); err != nil {
		return nil, err
	}
	x, err := vector.Follow(ctx, s, s.Clock(), failed)
	if err != nil {
		return nil, err
	}
	log.Info("searching through vectors", "in", vectorEmbedded, "records", x.Len())
	return x, nil
}
