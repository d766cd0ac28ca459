package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/server/postgres"
	"github.com/memwrite/memwrite-go/server/sqlite"
	"github.com/memwrite/memwrite-go/server/wakeup"
)

// opened is a store and what comes with it; what is nil is inside the process.
type opened struct {
	name    string // as logs and metrics call it
	store   protocol.Store
	wakeups protocol.Wakeups
	index   protocol.Projector
}

// close is for a store that no node came to own.
func (o opened) close() error {
	if x, ok := o.index.(interface{ Close() }); ok {
		x.Close()
	}
	if w, ok := o.wakeups.(interface{ Close() }); ok {
		w.Close()
	}
	return o.store.Close()
}

// openStore opens the database that is named, or else the file.
func openStore(ctx context.Context, c *config, log *slog.Logger) (opened, error) {
	if c.databaseURL == "" {
		s, err := sqlite.Open(ctx, c.db, sqlite.Options{SkipCheck: c.skipCheck})
		if err != nil {
			return opened{}, err
		}
		o := opened{name: "sqlite", store: s}
		if c.vector != vectorOff {
			index, err := fileIndex(ctx, c.db, s)
			if err != nil {
				return opened{}, errors.Join(err, s.Close())
			}
			o.index = index
		}
		return o, nil
	}
	u, err := url.Parse(c.databaseURL)
	if err != nil {
		return opened{}, fmt.Errorf("--database-url: not a URL") // the text may hold a password
	}
	switch u.Scheme {
	case "postgres", "postgresql":
		return openPostgres(ctx, c, log)
	default:
		return opened{}, fmt.Errorf("--database-url: %q is no database this server knows: want postgres://user:password@host/database", u.Scheme)
	}
}

// openPostgres also joins the nodes that share the database: by NATS when there
// is one, else by the database itself.
func openPostgres(ctx context.Context, c *config, log *slog.Logger) (opened, error) {
	var broker wakeup.Broker
	var err error
	if c.natsURL != "" {
		broker, err = wakeup.NATS(c.natsURL, c.natsSubject)
	} else {
		broker, err = wakeup.Postgres(c.databaseURL)
	}
	if err != nil {
		return opened{}, err
	}
	s, err := postgres.Open(ctx, postgres.Options{URL: c.databaseURL, Connections: c.connections})
	if err != nil {
		broker.Close()
		return opened{}, err
	}
	index, err := databaseIndex(ctx, c.vector, s, log)
	if err != nil {
		broker.Close()
		return opened{}, errors.Join(err, s.Close())
	}
	bus := wakeup.New(sched.Real(), broker, func(err error) {
		log.Warn("wake-ups do not reach other nodes, which costs time and nothing else", "error", err)
	})
	return opened{name: "postgres", store: s, wakeups: bus, index: index}, nil
}

// dataFolder is where this user keeps the data of programs.
func dataFolder() string {
	if d := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "memwrite")
	}
	if runtime.GOOS == "windows" {
		if d := os.Getenv("LOCALAPPDATA"); d != "" {
			return filepath.Join(d, "memwrite")
		}
	}
	home, err := os.UserHomeDir()
	switch {
	case err != nil:
		return "memwrite-data"
	case runtime.GOOS == "darwin":
		return filepath.Join(home, "Library", "Application Support", "memwrite")
	}
	return filepath.Join(home, ".local", "share", "memwrite")
}

func defaultDB() string { return filepath.Join(dataFolder(), "memwrite.db") }
