package main

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"
)

// What `mock` prints is all that `conform` needs to run every check.
func TestMockIsWhatConformRunsWhollyAgainst(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		cmd := root()
		cmd.SetArgs([]string{"mock"})
		cmd.SetOut(in)
		ended <- cmd.ExecuteContext(ctx)
	}()
	env := map[string]string{}
	for lines := bufio.NewScanner(out); len(env) < 8 && lines.Scan(); {
		name, value, _ := strings.Cut(strings.TrimPrefix(lines.Text(), "export "), "=")
		env[name] = value
	}
	report, err := conformed(t,
		"--memorysync-url", env["MEMORYSYNC_BASE_URL"], "--memorysync-key", env["MEMORYSYNC_API_KEY"], "--other-memorysync-key", env["MEMORYSYNC_OTHER_API_KEY"],
		"--fishmem-url", env["FISHMEM_BASE_URL"], "--fishmem-key", env["FISHMEM_API_KEY"], "--other-fishmem-key", env["FISHMEM_OTHER_API_KEY"],
		"--control-url", env["MEMWRITE_CONTROL_URL"], "--control-token", env["MEMWRITE_CONTROL_TOKEN"],
	)
	if err != nil || !strings.Contains(report, "all passed: ") || !strings.Contains(report, " 0 failed, 0 not run") {
		t.Errorf("%v\n%s", err, report)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
