package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func noEnv(string) string { return "" }

func settled(t *testing.T, args []string, env map[string]string, file string) (*config, *pflag.FlagSet, error) {
	t.Helper()
	c := &config{}
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	c.flags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return c, flags, settle(flags, func(name string) string { return env[name] }, file)
}

func written(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFlagBeatsEnvironmentBeatsFile(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{
		"YAML": "listen: 127.0.0.1:3\nrunners: 3\nlease: 3m\nrate-limits: true\n",
		"JSON": `{"listen": "127.0.0.1:3", "runners": 3, "lease": "3m", "rate-limits": true}`,
	} {
		c, _, err := settled(t, []string{"--listen", "127.0.0.1:1"}, map[string]string{"MEMWRITE_LISTEN": "127.0.0.1:2", "MEMWRITE_RUNNERS": "2"}, written(t, "c", file))
		if err != nil || c.listen != "127.0.0.1:1" || c.limits.Runners != 2 || c.limits.Lease != 3*time.Minute || !c.rates {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}

func TestWrongSettingsAreNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file, env, say string
	}{
		"an unknown name":      {file: "lisen: 127.0.0.1:1", say: `"lisen" is no setting`},
		"a list":               {file: "listen: [a]", say: "one value"},
		"no names at all":      {file: "just words", say: "names and values"},
		"a value that is none": {file: "runners: many", say: "runners"},
		"in the environment":   {env: "soon", say: "MEMWRITE_LEASE"},
	} {
		_, _, err := settled(t, nil, map[string]string{"MEMWRITE_LEASE": c.env}, written(t, "c.yaml", c.file))
		if err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: says %v", name, err)
		}
	}
	if _, _, err := settled(t, nil, nil, "/nowhere/at/all.yaml"); err == nil {
		t.Error("a file that is not there was passed over")
	}
}

func TestUnsafeOrImpossibleIsRefused(t *testing.T) {
	t.Parallel()
	for say, args := range map[string][]string{
		"--tls-cert":         {"--listen", "0.0.0.0:8080"},
		"in the clear":       {"--listen", ":8080"},
		"example.org":        {"--listen", "example.org:8080"},
		"belong together":    {"--tls-cert", "a"},
		"host:port":          {"--listen", "8080"},
		"at least 1":         {"--runners", "0"},
		"more than nothing":  {"--lease", "0s"},
		"does not keep":      {"--lease", "5s"},
		"--grace":            {"--grace", "-1s"},
		"--checkpoint-every": {"--checkpoint-every", "-1s"},
	} {
		c, _, err := settled(t, args, nil, "")
		if err == nil {
			err = c.check()
		}
		if err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%v: says %v", args, err)
		}
	}
	for _, args := range [][]string{{}, {"--listen", "[::1]:0"}, {"--listen", "localhost:0"}, {"--listen", ":1", "--allow-plaintext"}, {"--listen", ":1", "--tls-cert", "a", "--tls-key", "b"}} {
		c, _, err := settled(t, args, nil, "")
		if err == nil {
			err = c.check()
		}
		if err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestTheConfigurationIsPrintedWithoutSecrets(t *testing.T) {
	t.Parallel()
	_, flags, err := settled(t, []string{"--database-url", "postgres://app:hunter2@db.example/memwrite?password=hunter3&sslmode=require"}, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	announce(slog.New(slog.NewTextHandler(&out, nil)), flags)
	if s := out.String(); strings.Contains(s, "hunter") || !strings.Contains(s, "postgres://app:xxxxx@db.example/memwrite") || !strings.Contains(s, "runners=16") {
		t.Errorf("prints %s", s)
	}
	for _, v := range []string{"host=db password=hunter2", "hunter2"} {
		if got := shown("database-url", v); got != "(set)" {
			t.Errorf("shows %s", got)
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "data")
	made, from, err := findKeys("", noEnv, folder)
	if err != nil || len(made.keys) != 2 || len(made.workspaces) != 1 {
		t.Fatalf("%+v from %s, %v", made, from, err)
	}
	if info, err := os.Stat(from); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("made %v, %v", info.Mode(), err)
	}
	again, _, err := findKeys("", noEnv, folder)
	if err != nil || again.keys[0].Hash != made.keys[0].Hash {
		t.Errorf("made twice: %v", err)
	}
	env := func(name string) string {
		return map[string]string{"MEMWRITE_FISHMEM_KEY": "fm_0123456789abcdef"}[name]
	}
	got, _, err := findKeys("", env, folder)
	if err != nil || len(got.keys) != 1 || got.keys[0].Service != "fishmem" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, _, err := findKeys(from, env, folder); err == nil {
		t.Error("two sources of keys")
	}

	file := written(t, "keys.yaml", `
keys:
  - {sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08, service: memorysync, workspace: acme, scopes: ["memory:read"], expires: 2027-01-01T00:00:00Z}
  - {key: fm_0123456789abcdef, service: fishmem, workspace: other}
workspaces:
  - {id: acme, credits: 10, adds_per_month: 0, strict_quota: true, invalid_output_attempts: 2}
`)
	got, err = readKeys(file)
	if err != nil || len(got.keys) != 2 || len(got.workspaces) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	if w := got.workspaces[0]; w.Credits != 10 || w.AddsPerMonth != 0 || !w.StrictQuota || w.Extraction.InvalidOutputAttempts != 2 {
		t.Errorf("%+v", w)
	}
	if w := got.workspaces[1]; w.ID != "other" || w.Credits != -1 || w.AddsPerMonth != -1 {
		t.Errorf("%+v", w)
	}
	if k := got.keys[0]; len(k.Scopes) != 1 || k.Expires.Year() != 2027 || k.Hash[0] != 0x9f {
		t.Errorf("%+v", k)
	}
}

func TestAWrongKeyFileDoesNotQuoteAKey(t *testing.T) {
	t.Parallel()
	const key = "fm_secretsecretsecret"
	for name, text := range map[string]string{
		"no service":     "keys: [{key: " + key + "}]",
		"both":           "keys: [{key: " + key + ", sha256: aa, service: fishmem}]",
		"neither":        "keys: [{service: fishmem}]",
		"short":          "keys: [{key: secret, service: fishmem}]",
		"no hex":         "keys: [{sha256: secret, service: fishmem}]",
		"unknown field":  "keys: [{key: " + key + ", service: fishmem, colour: red}]",
		"two workspaces": "workspaces: [{id: a}, {id: a}]",
		"no YAML":        "keys: {" + key,
	} {
		_, err := parseKeys([]byte(text))
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: says %v", name, err)
		}
	}
}

func FuzzKeys(f *testing.F) {
	f.Add([]byte("keys:\n  - {key: fm_0123456789abcdef, service: fishmem}\nworkspaces:\n  - {id: a, credits: 1}\n"))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := parseKeys(raw)
		if err != nil {
			return
		}
		known := map[string]bool{}
		for _, w := range got.workspaces {
			known[w.ID] = true
		}
		for _, k := range got.keys {
			if !known[k.Workspace] {
				t.Fatalf("a key of workspace %q, which is not made", k.Workspace)
			}
		}
	})
}

func FuzzSettings(f *testing.F) {
	f.Add([]byte("listen: 127.0.0.1:1\nrunners: 2\n"))
	f.Add([]byte(`{"lease": "3s"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := parseSettings("file", raw)
		if err == nil && len(got) > len(raw) {
			t.Fatalf("%d settings in %d bytes", len(got), len(raw))
		}
	})
}
