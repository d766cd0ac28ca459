package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	memwrite "github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/server/internal/pgtest"
)

// Two nodes on one database search through vectors for what the other wrote,
// and not for what it forgot, before and after these were made anew.
func TestNodesSearchThroughVectors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, mode, in string
		url            func(testing.TB) string
	}{
		{"embedded", "embedded", "in=embedded", pgtest.URL},
		{"pgvector", "pgvector", "in=pgvector", pgtest.Vectors},
		{"auto", "auto", "in=pgvector", pgtest.Vectors},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			url := tc.url(t)
			keys := filepath.Join(t.TempDir(), "keys.yaml")
			if err := os.WriteFile(keys, []byte("keys:\n  - key: ms_vector_0123456789\n    service: memorysync\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			var clients []*memwrite.Client
			for range 2 {
				node := start(t, "--database-url", url, "--keys", keys, "--vector", tc.mode, "--repair-every", "50ms", "--database-connections", "3")
				if !strings.Contains(node.log.String(), tc.in) {
					t.Errorf("the log lacks %s:\n%s", tc.in, node.log)
				}
				c, err := memwrite.New(memwrite.WithMemorySync(node.url, "ms_vector_0123456789"))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close() })
				clients = append(clients, c)
			}
			finds := func(want string) {
				t.Helper()
				got, err := clients[1].Query(t.Context(), memwrite.QueryRequest{Query: "when do we release?", EndUserID: "acme"})
				if err != nil {
					t.Fatal(err)
				}
				var texts []string
				for _, m := range got {
					texts = append(texts, m.Text)
				}
				if found := strings.Join(texts, ", "); found != want {
					t.Errorf("found %q, want %q", found, want)
				}
			}
			var made []memwrite.AddResult
			for i, text := range []string{"My team ships releases every Thursday.", "I am allergic to peanuts."} {
				got, err := clients[0].Add(t.Context(), memwrite.AddRequest{Text: text, EndUserID: "acme", Ref: memwrite.NewRef("note", []string{"1", "2"}[i])})
				if err != nil {
					t.Fatal(err)
				}
				made = append(made, *got)
			}
			finds("Ships releases every Thursday")
			var out bytes.Buffer
			cmd := root()
			cmd.SetArgs([]string{"rebuild", "--database-url", url})
			cmd.SetOut(&out)
			if err := cmd.ExecuteContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			if want := map[bool]string{true: "2 records", false: "0 records"}[tc.in == "in=pgvector"]; !strings.HasPrefix(out.String(), want) {
				t.Errorf("rebuild says %q, want %s", out.String(), want)
			}
			finds("Ships releases every Thursday")
			if _, err := clients[0].Forget(t.Context(), memwrite.ForgetRequest{MemoryIDs: []int64{made[0].Memory.ID}, EndUserID: "acme"}); err != nil {
				t.Fatal(err)
			}
			finds("")
		})
	}
}

func TestVectorSettingsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	cases := map[string][]string{
		"want off":            {"--vector", "some"},
		"give --database-url": {"--vector", "pgvector"},
	}
	if url := pgtest.URL(t); !pgtest.HasVectors(t, url) {
		cases["no pgvector"] = []string{"--vector", "pgvector", "--database-url", url}
	}
	for want, args := range cases {
		cmd := root()
		cmd.SetArgs(append([]string{"serve", "--listen", "127.0.0.1:0", "--db", filepath.Join(t.TempDir(), "memwrite.db")}, args...))
		cmd.SetErr(&bytes.Buffer{})
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", args, err)
		}
	}
}
