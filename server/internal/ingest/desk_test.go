package ingest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/mockserver"
	"github.com/memwrite/memwrite-go/server/internal/ingest"
	"github.com/memwrite/memwrite-go/worker"
)

// desk is a server, a client and a folder.
type desk struct {
	srv    *mockserver.Server
	client *memwrite.Client
	dir    string
}

func newDesk(t *testing.T, opts ...mockserver.Option) *desk {
	t.Helper()
	srv := mockserver.Run(t, opts...)
	srv.SetScript(func(text string) ([]mockserver.Fact, bool) { return []mockserver.Fact{{Text: text, Key: text}}, true })
	client := srv.Client(t, memwrite.WithRetryPolicy(memwrite.RetryPolicy{Base: 5 * time.Millisecond, MaxTries: 2, NoGate: true}))
	return &desk{srv, client, t.TempDir()}
}

func (d *desk) config(file string) ingest.Config {
	return ingest.Config{
		In: strings.NewReader(file), State: filepath.Join(d.dir, "state"), Report: filepath.Join(d.dir, "report"),
		Worker: worker.Config{RetryBase: 10 * time.Millisecond, RetryMost: 50 * time.Millisecond},
	}
}

func (d *desk) run(t *testing.T, cfg ingest.Config) ingest.Counts {
	t.Helper()
	c, err := ingest.Run(t.Context(), d.client, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (d *desk) report(t *testing.T) []ingest.Line {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(d.dir, "report"))
	if err != nil {
		t.Fatal(err)
	}
	var out []ingest.Line
	for dec := json.NewDecoder(bytes.NewReader(data)); ; {
		var l ingest.Line
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		out = append(out, l)
	}
	slices.SortStableFunc(out, func(a, b ingest.Line) int { return a.Line - b.Line })
	return out
}

func outcomes(report []ingest.Line) string {
	var b strings.Builder
	for _, l := range report {
		fmt.Fprintf(&b, "%d %s\n", l.Line, l.Outcome)
	}
	return b.String()
}

func note(id int) string {
	return fmt.Sprintf(`{"kind":"note","id":"%d","end_user":"customer-%d","text":"Customer %d asked to be called on day %d."}`, id, id%10, id, id%28+1)
}
