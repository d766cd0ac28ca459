package sqlite

import (
	"errors"
	"strings"
	"testing"

	lib "modernc.org/sqlite/lib"
)

// A folder that is not writable is no read-only disk, although SQLite's codes
// for the two begin alike.
func TestTheRemedyFitsTheCode(t *testing.T) {
	t.Parallel()
	for code, say := range map[int]string{
		lib.SQLITE_READONLY:           "mount it writable",
		lib.SQLITE_READONLY_RECOVERY:  "mount it writable",
		lib.SQLITE_READONLY_DIRECTORY: "change the owner of the folder",
		lib.SQLITE_FULL:               "make room",
		lib.SQLITE_NOTADB:             "no SQLite file",
	} {
		if got := remedy(errors.New("said by SQLite"), code); !strings.Contains(got, say) {
			t.Errorf("%d: %q, want %q", code, got, say)
		}
	}
}
