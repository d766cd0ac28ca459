package vector_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/vector"
)

func note(id, user, text string) protocol.Record {
	return protocol.Record{ID: id, Workspace: "w", Wire: protocol.FishMem, Scope: protocol.Scope{UserID: user, RunID: "run"}, Text: text}
}

func opened(t *testing.T, dir string) *vector.Index {
	t.Helper()
	x, err := vector.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func project(t *testing.T, x *vector.Index, rs ...protocol.Record) {
	t.Helper()
	if err := x.Project(t.Context(), rs); err != nil {
		t.Fatal(err)
	}
}

// found is the ids of what a user has near to a query, sorted.
func found(t *testing.T, x *vector.Index, scope protocol.Scope, query string) []string {
	t.Helper()
	near, rest, err := x.Nearest(t.Context(), protocol.RecordQuery{Workspace: "w", Wire: protocol.FishMem, Scope: scope}, query, 1000)
	if err != nil || rest != 0 {
		t.Fatalf("rest %v, %v", rest, err)
	}
	var out []string
	for _, n := range near {
		out = append(out, n.ID)
	}
	slices.Sort(out)
	return out
}

// files is every file of a folder with what it holds.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		out[p] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var sam = protocol.Scope{UserID: "sam"}

func TestProjectingAgainChangesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x := opened(t, dir)
	rs := []protocol.Record{note("a", "sam", "ships releases"), note("b", "sam", "drinks tea"), note("c", "kim", "ships tea"), note("d", "sam", "the")}
	project(t, x, rs...)
	once := files(t, dir)
	for f, b := range once {
		if strings.Contains(b, "releases") || strings.Contains(b, "drinks") {
			t.Errorf("%s holds what a record says", f)
		}
	}
	project(t, x, rs...)
	if !reflect.DeepEqual(files(t, dir), once) {
		t.Error("the second time wrote something else")
	}
	for range 2 { // and again by what another process reads
		if got := found(t, x, sam, "tea"); !slices.Equal(got, []string{"b"}) {
			t.Errorf("tea finds %v", got)
		}
		if got := found(t, x, protocol.Scope{RunID: "run"}, "tea"); !slices.Equal(got, []string{"b", "c"}) {
			t.Errorf("tea of the run finds %v", got)
		}
		if x.Len() != 3 {
			t.Errorf("%d records", x.Len())
		}
		x = opened(t, dir)
	}
}

func TestForgottenRecordsLeave(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x := opened(t, dir)
	a, b := note("a", "sam", "drinks tea"), note("b", "sam", "likes tea")
	project(t, x, b)
	without := files(t, dir)
	project(t, x, a)
	for range 2 {
		project(t, x, a.Forget(a.CreatedAt))
	}
	if got := found(t, x, sam, "tea"); !slices.Equal(got, []string{"b"}) {
		t.Errorf("tea finds %v", got)
	}
	if !reflect.DeepEqual(files(t, dir), without) {
		t.Error("something of the record is left in the folder")
	}
}

func TestReconcileRepairsAnything(t *testing.T) {
	t.Parallel()
	var live []protocol.Record
	for i := range 20 {
		live = append(live, note(fmt.Sprint("r", i), []string{"sam", "kim"}[i%2], fmt.Sprint("tea number ", i)))
	}
	each := func(f func(protocol.Record) error) error {
		for _, r := range live {
			if err := f(r); err != nil {
				return err
			}
		}
		return nil
	}
	pristine := t.TempDir()
	project(t, opened(t, pristine), live...)
	want := found(t, opened(t, pristine), sam, "tea")
	if len(want) != 10 {
		t.Fatalf("finds %v", want)
	}
	for name, spoil := range map[string]func(file string) error{
		"gone":      os.Remove,
		"empty":     func(f string) error { return os.Truncate(f, 0) },
		"torn":      func(f string) error { return os.Truncate(f, 40) },
		"other":     func(f string) error { return os.WriteFile(f, []byte("no vector"), 0o600) },
		"untouched": func(string) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			x := opened(t, dir)
			project(t, x, live...)
			project(t, x, note("left over", "sam", "tea"))
			n := 0
			for f := range files(t, dir) {
				if n++; n%3 == 0 {
					if err := spoil(f); err != nil {
						t.Fatal(err)
					}
				}
			}
			for range 2 {
				x = opened(t, dir)
				if err := x.Reconcile(t.Context(), each); err != nil {
					t.Fatal(err)
				}
				if got := found(t, x, sam, "tea"); !slices.Equal(got, want) || x.Len() != len(live) {
					t.Errorf("finds %v of %d, want %v of %d", got, x.Len(), want, len(live))
				}
				if got := found(t, x, protocol.Scope{RunID: "run"}, "tea"); len(got) != len(live) {
					t.Errorf("the run finds %d", len(got))
				}
			}
			if err := vector.Discard(dir); err != nil {
				t.Fatal(err)
			}
			if x = opened(t, dir); x.Len() != 0 {
				t.Errorf("%d records in what was thrown away", x.Len())
			}
		})
	}
}
