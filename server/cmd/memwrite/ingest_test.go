package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/mockserver"
)

// cli runs a command in this process against a mock server.
func cli(t *testing.T, srv *mockserver.Server, args ...string) (out string, status_ int) {
	t.Helper()
	t.Setenv("MEMORYSYNC_BASE_URL", srv.URL)
	t.Setenv("MEMORYSYNC_API_KEY", srv.MemorySyncKey)
	t.Setenv("FISHMEM_BASE_URL", srv.URL)
	t.Setenv("FISHMEM_API_KEY", srv.FishMemKey)
	var buf bytes.Buffer
	cmd := root()
	cmd.SetArgs(args)
	cmd.SetOut(&buf)
	cmd.SetErr(&buf)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		fmt.Fprintln(&buf, said(err))
		return buf.String(), status(err)
	}
	return buf.String(), 0
}

func TestIngestTellsHowItEndedByItsStatus(t *testing.T) {
	const good = `{"kind":"note","id":"1","end_user":"acme","text":"Our office moved to Cardiff in May."}` + "\n"
	for name, tc := range map[string]struct {
		file   string
		fault  mockserver.Fault
		flags  []string
		status int
		says   string
	}{
		"all written":   {good, mockserver.Fault{}, nil, 0, "1 record, 1 stored"},
		"seen at once":  {good + "{\n[\n", mockserver.Fault{}, nil, 2, "line 2: the JSON is not a record's: it ends too early\nline 3: "},
		"the report":    {good + "{\n", mockserver.Fault{}, []string{"--report", filepath.Join(t.TempDir(), "r.jsonl")}, 2, "r.jsonl says which and why"},
		"on the spot":   {good + "{\n", mockserver.Fault{}, []string{"--report", "-"}, 2, `"outcome":"stored"`},
		"one rejected":  {good + "{\n", mockserver.Fault{}, nil, 2, "1 rejected"},
		"the quota":     {good, mockserver.Fault{Kind: mockserver.ExhaustQuota, Times: -1}, nil, 3, "again when that is mended"},
		"the service":   {good, mockserver.Fault{Kind: mockserver.Status, Code: 503, RetryAfter: "0", Times: -1}, []string{"--attempts", "1"}, 4, "run the same command again"},
		"a wrong flag":  {good, mockserver.Fault{}, []string{"--format", "xml"}, 1, "--format is jsonl or csv"},
		"a dry run":     {good, mockserver.Fault{}, []string{"--dry-run"}, 0, "1 valid"},
		"as JSON":       {good, mockserver.Fault{}, []string{"--json"}, 0, `"stored":1`},
		"with defaults": {`{"id":"7","text":"Our office moved to Cardiff."}`, mockserver.Fault{}, []string{"--kind", "note", "--end-user", "acme", "--write", "verbatim"}, 0, "1 stored"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := mockserver.Run(t)
			file := filepath.Join(t.TempDir(), "notes.jsonl")
			if err := os.WriteFile(file, []byte(tc.file), 0o600); err != nil {
				t.Fatal(err)
			}
			if tc.fault.Kind != "" {
				srv.Arm(tc.fault)
			}
			out, got := cli(t, srv, append([]string{"ingest", file}, tc.flags...)...)
			if got != tc.status || !strings.Contains(out, tc.says) {
				t.Errorf("status %d, want %d\n%s", got, tc.status, out)
			}
		})
	}
}

// A variable that is not set holds the file, also when holds are waited out:
// no record is to blame.
func TestIngestHoldsForAMissingSetting(t *testing.T) {
	for _, flags := range [][]string{nil, {"--wait"}} {
		srv := mockserver.Run(t)
		file := filepath.Join(t.TempDir(), "notes.jsonl")
		lines := `{"kind":"note","id":"1","end_user":"acme","text":"Our office moved to Cardiff in May."}` + "\n" +
			`{"write":"infer","kind":"note","id":"2","end_user":"acme","text":"My team ships releases every Thursday."}` + "\n"
		if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
		run := func(fishMem bool) (string, int) {
			t.Setenv("MEMORYSYNC_BASE_URL", srv.URL)
			t.Setenv("MEMORYSYNC_API_KEY", srv.MemorySyncKey)
			t.Setenv("FISHMEM_BASE_URL", "")
			t.Setenv("FISHMEM_API_KEY", "")
			if fishMem {
				t.Setenv("FISHMEM_BASE_URL", srv.URL)
				t.Setenv("FISHMEM_API_KEY", srv.FishMemKey)
			}
			var buf bytes.Buffer
			cmd := root()
			cmd.SetArgs(append([]string{"ingest", file, "--concurrency", "1"}, flags...))
			cmd.SetOut(&buf)
			cmd.SetErr(&buf)
			err := cmd.ExecuteContext(t.Context())
			fmt.Fprintln(&buf, err)
			if err == nil {
				return buf.String(), 0
			}
			return buf.String(), status(err)
		}
		if out, got := run(false); got != 3 || !strings.Contains(out, "FISHMEM_API_KEY") || !strings.Contains(out, "1 held") {
			t.Errorf("%v: status %d\n%s", flags, got, out)
		}
		if out, got := run(true); got != 0 || len(srv.Records()) != 2 { // the other record may have been on its way when the hold began
			t.Errorf("%v: with the setting mended: status %d\n%s", flags, got, out)
		}
	}
}

func TestWaitEventsRedriveForget(t *testing.T) {
	srv := mockserver.Run(t)
	client := srv.Client(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	bad := srv.Arm(mockserver.Fault{Kind: mockserver.ProviderInvalid, Times: -1, Key: "note-2"})
	var ids []string
	for _, id := range []string{"1", "2"} {
		receipt, err := client.AddAsync(ctx, memwrite.InferRequest{Key: memwrite.NewRef("note", id), Scope: memwrite.Scope{UserID: "acme"}, Content: "Our office number " + id + " moved to Cardiff."})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, receipt.EventID)
	}
	if out, got := cli(t, srv, "wait", ids[0]); got != 0 || !strings.Contains(out, "SUCCEEDED") {
		t.Errorf("status %d\n%s", got, out)
	}
	if out, got := cli(t, srv, "wait", ids[1], "--json"); got != 2 || !strings.Contains(out, `"status":"FAILED"`) || !strings.Contains(out, "memwrite redrive "+ids[1]) {
		t.Errorf("status %d\n%s", got, out)
	}
	if out, got := cli(t, srv, "events", "--status", "FAILED", "--json"); got != 0 || strings.Count(out, "\n") != 1 || !strings.Contains(out, ids[1]) {
		t.Errorf("status %d\n%s", got, out)
	}
	if out, got := cli(t, srv, "events", "--status", "DONE"); got != 1 || out != "--status DONE: want PENDING, RUNNING, RETRYING, SUCCEEDED or FAILED\n" {
		t.Errorf("status %d\n%s", got, out)
	}
	if out, got := cli(t, srv, "events", "--limit", "1"); got != 0 || strings.Count(out, "\n") != 2 {
		t.Errorf("status %d\n%s", got, out)
	}
	bad.Disarm()
	if out, got := cli(t, srv, "redrive", ids[1], "--wait"); got != 0 || !strings.Contains(out, "SUCCEEDED") {
		t.Errorf("status %d\n%s", got, out)
	}
	added, err := client.Add(ctx, memwrite.AddRequest{Text: "We prefer invoices as PDF attachments.", EndUserID: "acme", Ref: memwrite.NewRef("note", "3")})
	if err != nil {
		t.Fatal(err)
	}
	if out, got := cli(t, srv, "forget", "--end-user", "acme", fmt.Sprint(added.MemoryIDs[0])); got != 0 || out != "1 of 1 deleted\n" {
		t.Errorf("status %d\n%s", got, out)
	}
	if out, got := cli(t, srv, "forget", "--end-user", "acme", "m_7"); got != 1 || !strings.Contains(out, "is not the number") {
		t.Errorf("status %d\n%s", got, out)
	}
	srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Times: -1})
	receipt, err := client.AddAsync(ctx, memwrite.InferRequest{Key: memwrite.NewRef("note", "4"), Scope: memwrite.Scope{UserID: "acme"}, Content: "Our office is open on Sundays."})
	if err != nil {
		t.Fatal(err)
	}
	if out, got := cli(t, srv, "wait", receipt.EventID, "--timeout", "100ms"); got != 4 {
		t.Errorf("status %d\n%s", got, out)
	}
}

func TestKeysAndVersionAsJSON(t *testing.T) {
	srv := mockserver.Run(t)
	dir := t.TempDir()
	if err := makeKeys(filepath.Join(dir, "keys.yaml")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"keys", "--json", "--db", filepath.Join(dir, "m.db")}, {"version", "--json"}} {
		out, got := cli(t, srv, args...)
		var v map[string]string
		if err := json.Unmarshal([]byte(out), &v); got != 0 || err != nil || len(v) != 4 {
			t.Errorf("%v: status %d, %v, %d fields", args, got, err, len(v))
		}
	}
}

func TestCompletionKnowsTheFlags(t *testing.T) {
	srv := mockserver.Run(t)
	out, got := cli(t, srv, "__complete", "ingest", "--write", "")
	if got != 0 || !regexp.MustCompile(`add\nturn\ninfer\nverbatim`).MatchString(out) {
		t.Errorf("status %d\n%s", got, out)
	}
	if out, got := cli(t, srv, "completion", "bash"); got != 0 || !strings.Contains(out, "memwrite") {
		t.Errorf("status %d", got)
	}
}
