package main

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/mockserver"
)

var ingestLines = flag.Int("lines", 3000, "lines of the file that TestIngestSurvivesKills writes")

// The program itself, for tests that kill it.
func TestMain(m *testing.M) {
	if os.Getenv("MEMWRITE_TEST_AS_PROGRAM") == "1" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type program struct {
	cmd *exec.Cmd
	out *lines
	end chan error
}

func startProgram(t *testing.T, env []string, args ...string) *program {
	t.Helper()
	p := &program{cmd: exec.Command(os.Args[0], args...), out: &lines{url: make(chan string, 1)}, end: make(chan error, 1)}
	p.cmd.Env = append(append(os.Environ(), "MEMWRITE_TEST_AS_PROGRAM=1"), env...)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.end <- p.cmd.Wait() }()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	return p
}

func (p *program) kill() {
	_ = p.cmd.Process.Kill()
	<-p.end
}

// peak is the most memory the process had, in MiB.
func (p *program) peak() int64 {
	if use, ok := p.cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		return use.Maxrss >> 10
	}
	return 0
}

func serveProgram(t *testing.T, db, listen string) (p *program, url string) {
	t.Helper()
	p = startProgram(t, []string{"MEMWRITE_MEMORYSYNC_KEY=ms_live_0123456789abcdef", "MEMWRITE_FISHMEM_KEY=fm_0123456789abcdef"},
		"serve", "--db", db, "--listen", listen, "--lease", "2s", "--heartbeat", "500ms", "--repair-every", "500ms", "--skip-integrity-check")
	select {
	case url = <-p.out.url:
	case err := <-p.end:
		t.Fatalf("serve ended: %v\n%s", err, p.out)
	case <-time.After(2 * time.Minute):
		t.Fatalf("serve does not start\n%s", p.out)
	}
	return p, url
}

// A file is ingested while the ingest is killed twice, the second time together
// with the server. Every line is one memory in the end.
func TestIngestSurvivesKills(t *testing.T) {
	if testing.Short() {
		t.Skip("runs for some seconds")
	}
	n := *ingestLines
	dir := t.TempDir()
	file, db := filepath.Join(dir, "notes.jsonl"), filepath.Join(dir, "memwrite.db")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	for i := range n {
		fmt.Fprintf(w, `{"kind":"note","id":"%d","end_user":"customer-%d","text":"Customer %d prefers invoices on day %d of the month."}`+"\n", i, i, i, i%28+1)
		if i%(n/10) == n/20 {
			fmt.Fprintf(w, "{\"kind\":\"note\",\"id\":\"%d\",\"end_user\":\"customer-%d\",\"text\":\"Another text under a known id.\"}\nnot a record\n", i, i)
		}
	}
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		t.Fatal(err)
	}

	server, url := serveProgram(t, db, "127.0.0.1:0")
	env := []string{"MEMORYSYNC_BASE_URL=" + url, "MEMORYSYNC_API_KEY=ms_live_0123456789abcdef"}
	args := []string{"ingest", file, "--report", filepath.Join(dir, "report.jsonl"), "--json", "--concurrency", "16"}
	books, err := sql.Open("sqlite", "file:"+db+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer books.Close()
	tasks := func() (n int) {
		_ = books.QueryRow(`SELECT count(*) FROM task`).Scan(&n)
		return n
	}
	var peak int64
	began := time.Now()
	for kill := range 2 {
		p := startProgram(t, env, args...)
		for tasks() < n*(kill+1)/3 {
			select {
			case err := <-p.end:
				t.Fatalf("ingest ended: %v\n%s", err, p.out)
			case <-time.After(20 * time.Millisecond):
			}
		}
		if kill == 1 {
			server.kill()
			server, _ = serveProgram(t, db, strings.TrimPrefix(url, "http://"))
		}
		p.kill()
		peak = max(peak, p.peak())
	}
	last := startProgram(t, env, args...)
	err = <-last.end
	peak = max(peak, last.peak())
	took := time.Since(began)
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != 2 { // some lines are rejected
		t.Fatalf("ingest ended with %v, want status 2\n%s", err, last.out)
	}
	var counts struct{ Records, Before, Stored, Already, Rejected, Held, Unfinished int }
	if err := json.Unmarshal([]byte(strings.SplitN(last.out.String(), "\n", 2)[0]), &counts); err != nil {
		t.Fatal(err)
	}
	var stored, distinct, unfinished int
	for q, v := range map[string]*int{
		`SELECT count(*) FROM record WHERE forgotten = 0`: &stored, `SELECT count(DISTINCT end_user) FROM record WHERE forgotten = 0`: &distinct,
		`SELECT count(*) FROM task WHERE state <> 'SUCCEEDED'`: &unfinished,
	} {
		if err := books.QueryRow(q).Scan(v); err != nil {
			t.Fatal(err)
		}
	}
	figure := func(name string, got int64, op string, want int64) {
		ok := "ok"
		if op == "==" && got != want || op == "<" && got >= want {
			ok = "short"
			t.Errorf("%s is %d, want %s %d", name, got, op, want)
		}
		fmt.Printf("figure %s %d %s %d %s\n", name, got, op, want, ok)
	}
	fmt.Printf("ingest lines=%d stored=%d already=%d rejected=%d took=%v\n", n, counts.Before+counts.Stored, counts.Already, counts.Rejected, took.Round(time.Second))
	figure("ingest_duplicates", int64(stored-distinct), "==", 0)
	figure("ingest_lost", int64(n-distinct), "==", 0)
	figure("ingest_unfinished_tasks", int64(unfinished), "==", 0)
	figure("ingest_rejected", int64(counts.Rejected), "==", 20)
	figure("ingest_peak_mib", peak, "<", 100)
	if counts.Before+counts.Stored+counts.Already != n {
		t.Errorf("%+v", counts)
	}
	// The report has each line's end once, whatever the kills left behind.
	report, err := os.ReadFile(filepath.Join(dir, "report.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if got := bytes.Count(report, []byte(`"outcome":"stored"`)) + bytes.Count(report, []byte(`"outcome":"already"`)); got != n {
		t.Errorf("the report has %d records that are there, want %d", got, n)
	}
}

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
