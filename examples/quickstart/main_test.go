package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/memwrite/memwrite-go/mockserver"
)

func lastLine(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return lines[len(lines)-1]
}

func noEnv(string) string { return "" }

func TestBuiltInNotesEndInTrueBooks(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(t.Context(), nil, noEnv, strings.NewReader(""), &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	const want = "notes=28 stored=23 already=1 skipped=2 no_memory=1 failed=1 duplicates=0 lost=0 settled=25 released=1 balance=ok"
	if got := lastLine(out.String()); got != want {
		t.Errorf("got  %s\nwant %s\n%s", got, want, out.String())
	}
	for _, p := range plan {
		if !strings.Contains(out.String(), p.words) {
			t.Errorf("nothing says %q: the fault did not strike", p.words)
		}
	}
}

func TestNotesFromAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "notes.jsonl")
	if err := os.WriteFile(file, []byte(`{"id":"7","end_user":"acme","kind":"note","text":"My team ships releases every Thursday."}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-notes", file}, noEnv, strings.NewReader(""), &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if got := lastLine(out.String()); !strings.HasPrefix(got, "notes=1 stored=1 ") || !strings.HasSuffix(got, "balance=ok") {
		t.Errorf("got %s", got)
	}
}

func TestLiveServicesOnlyAfterYes(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	args := []string{"-memorysync-url", srv.URL, "-fishmem-url", srv.URL}
	env := func(name string) string {
		return map[string]string{"MEMORYSYNC_API_KEY": srv.MemorySyncKey, "FISHMEM_API_KEY": srv.FishMemKey}[name]
	}
	var out bytes.Buffer
	if err := run(t.Context(), args, env, strings.NewReader("y\n"), &out); err == nil {
		t.Fatal("anything but yes must write nothing")
	}
	if n := len(srv.Journal()); n != 0 {
		t.Fatalf("%d requests before a yes", n)
	}
	// The note that has to fail does so by a fault of the embedded server, so
	// here it is one more note.
	if err := run(t.Context(), args, env, strings.NewReader("yes\n"), &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	const want = "notes=28 stored=24 already=1 skipped=2 no_memory=1 failed=0 duplicates=0 lost=0 settled=0 released=0 balance=unknown"
	if got := lastLine(out.String()); got != want {
		t.Errorf("got  %s\nwant %s\n%s", got, want, out.String())
	}
}

func TestAnotherReferenceServer(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	env := func(name string) string {
		return map[string]string{"MEMORYSYNC_API_KEY": srv.MemorySyncKey, "FISHMEM_API_KEY": srv.FishMemKey}[name]
	}
	for _, settled := range []string{"settled=26", "settled=0"} { // the second run finds everything there
		var out bytes.Buffer
		if err := run(t.Context(), []string{"-server", srv.URL + "/"}, env, strings.NewReader(""), &out); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		if got := lastLine(out.String()); !strings.Contains(got, settled) || !strings.HasSuffix(got, "lost=0 "+settled+" released=0 balance=ok") {
			t.Errorf("got %s", got)
		}
	}
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-server", srv.URL}, noEnv, strings.NewReader(""), &out); err == nil {
		t.Error("no key and no error")
	}
}

func TestLiveServicesNeedKeys(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := run(t.Context(), []string{"-memorysync-url", "https://127.0.0.1:1", "-fishmem-url", "https://127.0.0.1:1"}, noEnv, strings.NewReader("yes\n"), &out)
	if err == nil {
		t.Fatal("no key and no error")
	}
}

func TestABadLineNamesItselfAndNotItsText(t *testing.T) {
	t.Parallel()
	const secret = "the launch code"
	for name, line := range map[string]string{
		"no JSON":       `{"id":"1","text":"` + secret,
		"no id":         `{"end_user":"a","kind":"note","text":"` + secret + `"}`,
		"no text":       `{"id":"1","end_user":"a","kind":"note"}`,
		"no end user":   `{"id":"1","kind":"note","text":"` + secret + `"}`,
		"inferred":      `{"id":"1","write":"infer","text":"` + secret + `"}`,
		"verbatim":      `{"id":"1","write":"verbatim","end_user":"a","text":"` + secret + `"}`,
		"unknown write": `{"id":"1","end_user":"a","write":"poem","text":"` + secret + `"}`,
		"no speaker":    `{"end_user":"a","write":"turn","occurred_at":"x","text":"` + secret + `"}`,
	} {
		_, err := readNotes(strings.NewReader("\n" + line + "\n"))
		if err == nil || !regexp.MustCompile(`\bline 2\b`).MatchString(err.Error()) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestHelpIsNoError(t *testing.T) {
	t.Parallel()
	if err := run(t.Context(), []string{"--help"}, noEnv, strings.NewReader(""), &bytes.Buffer{}); err != nil {
		t.Error(err)
	}
}
