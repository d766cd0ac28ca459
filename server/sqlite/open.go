package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"syscall"

	"github.com/pressly/goose/v3"
	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

//go:embed migrations/*.sql
var migrations embed.FS

var (
	// ErrInUse: another process, or another store of this one, has the file.
	ErrInUse = errors.New("another process is using the file")
	// ErrNewer: the file was written by a later version.
	ErrNewer = errors.New("the file was written by a newer version of memwrite")
	// ErrDamaged: the integrity check found something.
	ErrDamaged = errors.New("the file is damaged")
)

// dsn names a connection to the file.
func dsn(path, vfs string, pragmas ...string) string {
	q := url.Values{"_pragma": pragmas, "_txlock": {"immediate"}}
	if vfs != "" {
		q.Set("vfs", vfs)
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String()
}

// check reads the whole file for damage.
func check(ctx context.Context, db *sql.DB) error {
	var found string
	if err := db.QueryRowContext(ctx, `PRAGMA quick_check(1)`).Scan(&found); err != nil {
		return err
	}
	if found != "ok" {
		return fmt.Errorf("%w: %s; put a backup in its place", ErrDamaged, found)
	}
	return nil
}

// migrate brings the file to the schema of this version.
func migrate(ctx context.Context, db *sql.DB) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, files)
	if err != nil {
		return err
	}
	current, target, err := p.GetVersions(ctx)
	if err != nil {
		return err
	}
	if current > target {
		return fmt.Errorf("%w: its schema is %d and this version knows %d; upgrade memwrite", ErrNewer, current, target)
	}
	_, err = p.Up(ctx)
	return err
}

// opening says what stands in the way and what to do.
func opening(path string, err error) error {
	var e *driver.Error
	code := 0
	if errors.As(err, &e) {
		code = e.Code()
	}
	if code&0xff == lib.SQLITE_CORRUPT && !errors.Is(err, ErrDamaged) {
		return fmt.Errorf("sqlite: %s: %w: %w; put a backup in its place", path, ErrDamaged, err)
	}
	if do := remedy(err, code); do != "" {
		return fmt.Errorf("sqlite: %s: %w: %s", path, err, do)
	}
	return fmt.Errorf("sqlite: %s: %w", path, err)
}

// remedy is what to do about an error, whose code of SQLite is 0 when it is not
// SQLite's.
func remedy(err error, code int) string {
	switch {
	case errors.Is(err, ErrInUse):
		return "stop it first, or give this one a file of its own; many nodes share a PostgreSQL database instead"
	case errors.Is(err, ErrNewer), errors.Is(err, ErrDamaged):
		return ""
	case errors.Is(err, fs.ErrPermission), code == lib.SQLITE_READONLY_DIRECTORY: // the log cannot be made beside the file
		return "this user may not write there: change the owner of the folder, or choose another file"
	case errors.Is(err, syscall.EROFS), code&0xff == lib.SQLITE_READONLY:
		return "the disk is read-only: mount it writable, or choose another file"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), code&0xff == lib.SQLITE_FULL:
		return "the disk is full: make room, or choose another file"
	case code&0xff == lib.SQLITE_NOTADB:
		return "this is no SQLite file: choose another one"
	}
	return ""
}

// failed turns what SQLite says into what a store may say. A constraint stops
// what would break the protocol; everything else is the disk or the machine.
// None of SQLite's texts holds a value.
func failed(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var e *driver.Error
	if errors.As(err, &e) {
		if e.Code()&0xff == lib.SQLITE_CONSTRAINT {
			return fmt.Errorf("%w: %w", protocol.ErrInvariant, err)
		}
	}
	return fmt.Errorf("%w: %w", protocol.ErrUnavailable, err)
}
