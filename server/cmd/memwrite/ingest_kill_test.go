package main

import (
	"bufio"
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
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
