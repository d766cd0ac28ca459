// Package simulate lives through the schedules of the simulation on the store
// that keeps a file.
package simulate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sim"
	"github.com/memwrite/memwrite-go/server/sqlite"
)

// NewWorker is a worker of the simulation, each schedule of which has a new
// SQLite file in a folder. It is for one goroutine; a file that cannot be made
// is a panic, since it says nothing about the source.
func NewWorker(dir string) *sim.Worker {
	f := &files{dir: dir, empty: map[int64][]byte{}}
	w := sim.NewWorker()
	w.Open = func(first int64) protocol.Store {
		s, err := f.open(first)
		if err != nil {
			panic(err)
		}
		return s
	}
	return w
}

// files are made from an empty one, which takes less time than its migrations.
type files struct {
	dir   string
	empty map[int64][]byte // by the first number of its records
}

// file is a store whose file goes with it.
type file struct {
	*sqlite.Store
	path string
}

func (f *files) open(first int64) (protocol.Store, error) {
	folder, err := os.MkdirTemp(f.dir, "schedule-")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(folder, "memwrite.db")
	open := func() (*sqlite.Store, error) {
		return sqlite.Open(context.Background(), path, sqlite.Options{FirstNumber: first, SkipCheck: true})
	}
	empty, ok := f.empty[first]
	if ok {
		if err := os.WriteFile(path, empty, 0o600); err != nil {
			return nil, err
		}
	} else {
		s, err := open()
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(path + "-wal"); !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("simulate: the log of a closed file: %w", err)
		}
		if f.empty[first], err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	s, err := open()
	if err != nil {
		return nil, err
	}
	return file{s, folder}, nil
}

func (f file) Close() error { return errors.Join(f.Store.Close(), os.RemoveAll(f.path)) }
