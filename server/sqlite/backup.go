package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Backup copies the file at one moment into a new one, while a server may be
// using it: writes go on meanwhile. The copy is a file of its own, without a
// log, and holds nothing that was deleted. It never overwrites.
func Backup(ctx context.Context, path, to string) (err error) {
	for _, p := range []*string{&path, &to} {
		if *p, err = filepath.Abs(*p); err != nil {
			return fmt.Errorf("sqlite: %w", err)
		}
	}
	if _, err := os.Stat(path); err != nil { // SQLite would make an empty one
		return opening(path, err)
	}
	// The copy holds memory text: it is made for its owner alone, and SQLite
	// fills an empty file.
	f, err := os.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("sqlite: %s is there already: name another file", to)
	}
	if err != nil {
		return opening(to, err)
	}
	_ = f.Close()
	defer func() {
		if err != nil {
			_ = os.Remove(to)
		}
	}()
	db, err := sql.Open("sqlite", dsn(path, "", "busy_timeout(2000)"))
	if err != nil {
		return opening(path, err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, `VACUUM INTO ?`, to); err != nil {
		return opening(path, err)
	}
	return syncFile(to)
}

// syncFile puts a whole file, and that it is there, on the disk.
func syncFile(path string) error {
	for _, p := range []string{path, filepath.Dir(path)} {
		f, err := os.Open(p)
		if err != nil {
			return opening(path, err)
		}
		err = f.Sync()
		_ = f.Close()
		if err != nil && p == path {
			return opening(path, err)
		}
	}
	return nil
}
