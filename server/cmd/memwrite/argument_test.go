package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each of these says which argument or setting is meant, and what to do.
func TestWrongCallsSayWhatIsWanted(t *testing.T) {
	t.Parallel()
	file := written(t, "file", "")
	locked := filepath.Join(t.TempDir(), "memwrite.db")
	if err := os.Mkdir(filepath.Join(filepath.Dir(locked), "keys.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	busy := start(t, "--db", filepath.Join(t.TempDir(), "memwrite.db"))
	address := strings.TrimPrefix(busy.url, "http://")
	db := filepath.Join(t.TempDir(), "memwrite.db")
	for say, args := range map[string][]string{
		"want memwrite backup FILE":                       {"backup"},
		"want memwrite keys new memorysync|fishmem":       {"keys", "new"},
		"2 arguments in place of one: want memwrite wait": {"wait", "a", "b"},
		"want postgres://user:password@host/database":     {"serve", "--db", db, "--listen", "127.0.0.1:0", "--database-url", "mysql://host/database"},
		"or choose another --db":                          {"serve", "--db", filepath.Join(file, "memwrite.db"), "--listen", "127.0.0.1:0"},
		"`memwrite keys` is for the user who runs":        {"keys", "--db", locked},
		"no keys yet": {"keys", "--db", filepath.Join(t.TempDir(), "memwrite.db")},
		"stop what has the address, or choose another": {"serve", "--db", db, "--listen", address},
	} {
		cmd := root()
		cmd.SetArgs(args)
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%v: says %v, want %q", args, err, say)
		}
	}
}
