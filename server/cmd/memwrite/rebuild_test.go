package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	memwrite "github.com/memwrite/memwrite-go"
)

// The vectors can be thrown away, made anew and left off, and a search answers
// the same.
func TestRebuildMakesTheVectorsAnew(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "memwrite.db")
	rebuild := func() (string, error) {
		var out bytes.Buffer
		cmd := root()
		cmd.SetArgs([]string{"rebuild", "--db", db})
		cmd.SetOut(&out)
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	if _, err := rebuild(); err == nil {
		t.Error("rebuilt from a file that is not there")
	}
	search := func(srv *running) string {
		t.Helper()
		client, err := memwrite.New(memwrite.WithMemorySync(srv.url, environment(t, db, srv.url)["MEMORYSYNC_API_KEY"]))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		for i, text := range []string{"My team ships releases every Thursday.", "I am allergic to peanuts."} {
			if _, err := client.Add(t.Context(), memwrite.AddRequest{Text: text, EndUserID: "acme", Ref: memwrite.NewRef("note", []string{"1", "2"}[i])}); err != nil {
				t.Fatal(err)
			}
		}
		found, err := client.Query(t.Context(), memwrite.QueryRequest{Query: "when do we release?", EndUserID: "acme"})
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		for _, m := range found {
			out.WriteString(m.Text + "\n")
		}
		return out.String()
	}
	srv := start(t, "--db", db, "--vector", "embedded")
	want := search(srv)
	if !strings.Contains(want, "Ships releases every Thursday") {
		t.Fatalf("found %q", want)
	}
	if _, err := rebuild(); err == nil || !strings.Contains(err.Error(), "another process is using the file") {
		t.Errorf("rebuilt under a server: %v", err)
	}
	if err := srv.stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(vectorsOf(db)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if out, err := rebuild(); err != nil || !strings.HasPrefix(out, "2 records are in ") {
			t.Errorf("rebuild says %q, %v", out, err)
		}
	}
	for _, mode := range []string{"embedded", "off"} {
		srv := start(t, "--db", db, "--vector", mode)
		if got := search(srv); got != want {
			t.Errorf("%s finds %q, want %q", mode, got, want)
		}
		if err := srv.stop(); err != nil {
			t.Fatal(err)
		}
	}
}
