package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func conformed(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := root()
	cmd.SetArgs(append([]string{"conform"}, args...))
	cmd.SetOut(&out)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestServeConforms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keys := filepath.Join(dir, "keys.yaml")
	if err := os.WriteFile(keys, []byte(`keys:
  - {key: ms_live_0123456789abcdef, service: memorysync, workspace: one}
  - {key: fm_0123456789abcdef, service: fishmem, workspace: one}
  - {key: ms_live_0123456789abcdeg, service: memorysync, workspace: two}
  - {key: fm_0123456789abcdeg, service: fishmem, workspace: two}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	srv := start(t, "--db", filepath.Join(dir, "memwrite.db"), "--keys", keys)
	junit := filepath.Join(dir, "junit.xml")
	args := []string{
		"--memorysync-url", srv.url, "--memorysync-key", "ms_live_0123456789abcdef", "--other-memorysync-key", "ms_live_0123456789abcdeg",
		"--fishmem-url", srv.url, "--fishmem-key", "fm_0123456789abcdef", "--other-fishmem-key", "fm_0123456789abcdeg",
	}
	out, err := conformed(t, append(args, "--junit", junit)...)
	if err != nil || !strings.Contains(out, "all passed: ") || !strings.Contains(out, "plan: ") {
		t.Fatalf("%v\n%s", err, out)
	}
	if report, err := os.ReadFile(junit); err != nil || !strings.Contains(string(report), `failures="0"`) {
		t.Errorf("%v %s", err, report)
	}
	plan, err := conformed(t, append(args, "--plan")...)
	if err != nil || !strings.HasPrefix(plan, "plan: ") || strings.Contains(plan, "passed") {
		t.Errorf("%v\n%s", err, plan)
	}
	if strings.Contains(out+plan+srv.log.String(), "0123456789abcde") {
		t.Error("a key is shown")
	}
	if out, err := conformed(t, "--fishmem-url", srv.url, "--fishmem-key", "fm_of_somebody_else"); err == nil {
		t.Errorf("a key that is refused:\n%s", out)
	}
}
