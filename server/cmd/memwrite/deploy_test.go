package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// repository is where the files for deployment are.
const repository = "../../.."

func read(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(repository, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// A flag that was renamed must not be left in a file that nobody runs here.
func TestDeploymentFilesStartTheServer(t *testing.T) {
	t.Parallel()
	commands := map[string][]string{}

	entry := regexp.MustCompile(`(?m)^CMD (\[.*\])$`).FindStringSubmatch(read(t, "Dockerfile"))
	if entry == nil {
		t.Fatal("the Dockerfile has no CMD")
	}
	var args []string
	if err := json.Unmarshal([]byte(entry[1]), &args); err != nil {
		t.Fatal(err)
	}
	commands["Dockerfile"] = args

	unit := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/memwrite (.*)$`).FindStringSubmatch(read(t, "deploy/memwrite.service"))
	if unit == nil {
		t.Fatal("the unit starts nothing")
	}
	commands["memwrite.service"] = strings.Fields(unit[1])

	var compose struct {
		Services map[string]struct {
			Command     []string
			Environment map[string]string
			Profiles    []string
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "compose.yaml")), &compose); err != nil {
		t.Fatal(err)
	}
	nodes := 0
	for name, s := range compose.Services {
		if len(s.Profiles) != 1 || (s.Profiles[0] != "one" && s.Profiles[0] != "many") {
			t.Errorf("%s has the profiles %v", name, s.Profiles)
		}
		if s.Command != nil {
			nodes++
			commands[name] = s.Command
		}
		for variable := range s.Environment {
			if setting, ok := strings.CutPrefix(variable, envPrefix); ok && variable != envMemorySync && variable != envFishMem {
				c := &config{}
				cmd := serve()
				if cmd.Flags().Lookup(strings.ToLower(strings.ReplaceAll(setting, "_", "-"))) == nil {
					t.Errorf("%s sets %s, which is no setting of %T", name, variable, c)
				}
			}
		}
	}
	if nodes != 3 || len(compose.Services) != 5 {
		t.Errorf("%d nodes in %d services", nodes, len(compose.Services))
	}
	for name, args := range commands {
		if args[0] != "serve" {
			t.Errorf("%s runs %v", name, args)
			continue
		}
		c, _, err := settled(t, args[1:], nil, "")
		if err == nil {
			err = c.check()
		}
		if err != nil {
			t.Errorf("%s: %v: %v", name, args, err)
		}
	}
}

// Modules are downloaded in the image before the rest of the repository is
// there: of each module that is replaced by a folder, its go.mod has to be.
func TestTheImageHasTheModulesItDownloads(t *testing.T) {
	t.Parallel()
	before, _, ok := strings.Cut(read(t, "Dockerfile"), "RUN cd server && go mod download")
	if !ok {
		t.Fatal("the Dockerfile downloads nothing")
	}
	replaced := regexp.MustCompile(`(?m)=> \.\./?(\S*)$`).FindAllStringSubmatch(read(t, "server/go.mod"), -1)
	if len(replaced) == 0 {
		t.Fatal("server/go.mod replaces nothing")
	}
	for _, m := range replaced {
		if file := filepath.ToSlash(filepath.Join(m[1], "go.mod")); !regexp.MustCompile(`(?m)^COPY (.* )?` + regexp.QuoteMeta(file) + ` `).MatchString(before) {
			t.Errorf("the Dockerfile does not copy %s before it downloads", file)
		}
	}
}

// Every flag and every metric the page names is there, and every metric there is
// is on the page.
func TestTheOperationsPageIsTrue(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/operations.md")
	known := map[string]bool{}
	for _, cmd := range root().Commands() {
		for _, m := range regexp.MustCompile(`--[a-z][a-z-]+`).FindAllString(cmd.UsageString()+cmd.Flags().FlagUsages(), -1) {
			known[m] = true
		}
	}
	for _, m := range regexp.MustCompile("`(--[a-z][a-z-]+)").FindAllStringSubmatch(page, -1) {
		if !known[m[1]] {
			t.Errorf("the page names %s", m[1])
		}
	}
	var code strings.Builder
	files, err := filepath.Glob(filepath.Join(repository, "server/metrics/*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(raw)
	}
	metric := regexp.MustCompile(`memwrite_[a-z_]+`)
	there := map[string]bool{}
	for _, m := range metric.FindAllString(code.String(), -1) {
		there[m] = true
		if !strings.Contains(page, "`"+m+"`") {
			t.Errorf("the page does not say what %s means", m)
		}
	}
	for _, m := range metric.FindAllString(page, -1) {
		if !there[m] {
			t.Errorf("the page names %s", m)
		}
	}
}

func TestHealthAsksAServer(t *testing.T) {
	t.Parallel()
	status := http.StatusOK
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer srv.Close()
	ask := func() error {
		cmd := root()
		cmd.SetArgs([]string{"health", "--url", srv.URL})
		cmd.SetOut(&bytes.Buffer{})
		return cmd.ExecuteContext(t.Context())
	}
	if err := ask(); err != nil {
		t.Error(err)
	}
	status = http.StatusServiceUnavailable
	if err := ask(); err == nil {
		t.Error("a server that is not ready is")
	}
}

func TestBackupOfARunningServer(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "memwrite.db")
	start(t, "--db", db)
	to := filepath.Join(t.TempDir(), "copy.db")
	cmd := root()
	cmd.SetArgs([]string{"backup", "--db", db, to})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	start(t, "--db", to)
}
