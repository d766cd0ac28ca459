package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/sqlite"
)

// opened is a store and what comes with it; what is nil is inside the process.
type opened struct {
	name    string // as logs and metrics call it
	store   protocol.Store
	wakeups protocol.Wakeups
}

// openStore opens the database that is named, or else the file.
func openStore(ctx context.Context, c *config) (opened, error) {
	if c.databaseURL == "" {
		s, err := sqlite.Open(ctx, c.db, sqlite.Options{SkipCheck: c.skipCheck})
		if err != nil {
			return opened{}, err
		}
		return opened{name: "sqlite", store: s}, nil
	}
	u, err := url.Parse(c.databaseURL)
	if err != nil {
		return opened{}, fmt.Errorf("--database-url: not a URL") // the text may hold a password
	}
	switch u.Scheme {
	default:
		return opened{}, fmt.Errorf("--database-url: %q is no database this server knows", u.Scheme)
	}
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
