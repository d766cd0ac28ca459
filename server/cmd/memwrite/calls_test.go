package main

import (
	"strings"
	"testing"
)

// What a shell has to set is named, and nothing of the library.
func TestAMissingServiceIsNamedByItsVariables(t *testing.T) {
	for name, tc := range map[string]struct {
		env  map[string]string
		args []string
		says string
	}{
		"nothing is set":  {nil, []string{"events"}, "no service is set. Set MEMORYSYNC_BASE_URL with MEMORYSYNC_API_KEY, or FISHMEM_BASE_URL with FISHMEM_API_KEY; "},
		"half of it is":   {map[string]string{"FISHMEM_API_KEY": "fm_1"}, []string{"events"}, "FISHMEM_BASE_URL: not set, although FISHMEM_API_KEY is. Set "},
		"without scheme":  {map[string]string{"FISHMEM_API_KEY": "fm_1", "FISHMEM_BASE_URL": "localhost:8080"}, []string{"events"}, "FISHMEM_BASE_URL with FISHMEM_API_KEY: base URL "},
		"the other of it": {map[string]string{"MEMORYSYNC_API_KEY": "ms_1", "MEMORYSYNC_BASE_URL": "http://127.0.0.1:9"}, []string{"events"}, "Events: invalid input: service: not configured; use FISHMEM_BASE_URL with FISHMEM_API_KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, v := range []string{"MEMORYSYNC_BASE_URL", "MEMORYSYNC_API_KEY", "FISHMEM_BASE_URL", "FISHMEM_API_KEY"} {
				t.Setenv(v, tc.env[v])
			}
			cmd := root()
			cmd.SetArgs(tc.args)
			err := cmd.ExecuteContext(t.Context())
			if err == nil || !strings.HasPrefix(said(err), tc.says) {
				t.Errorf("says %v, want %s…", err, tc.says)
			}
		})
	}
}
