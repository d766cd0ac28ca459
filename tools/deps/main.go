// Command deps prints the modules that any non-test package of the root module
// reaches, and fails on one that is not allowed: whoever imports the client
// inherits exactly these.
//
// It is run from the tools directory, without a workspace, so that no other
// module's versions or packages take part.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// allowed lists the modules a user of the client may inherit. golang.org/x is
// allowed as a whole.
var allowed = []string{
	"github.com/memwrite/memwrite-go",
	"github.com/hashicorp/go-retryablehttp",
	"github.com/hashicorp/go-cleanhttp",
	"github.com/cenkalti/backoff/v4",
	"github.com/oapi-codegen/runtime",
	"github.com/oapi-codegen/nullable",
	"github.com/google/uuid",
	"github.com/apapsch/go-jsonmerge/v2",
}

func main() {
	modules, err := reached("..")
	if err != nil {
		fmt.Fprintln(os.Stderr, "deps:", err)
		os.Exit(1)
	}
	var refused int
	for _, m := range modules {
		path, _, _ := strings.Cut(m, " ")
		if slices.Contains(allowed, path) || strings.HasPrefix(path, "golang.org/x/") {
			fmt.Println("  ok      ", m)
			continue
		}
		refused++
		fmt.Println("  REFUSED ", m)
	}
	if refused > 0 {
		fmt.Fprintf(os.Stderr, "deps: %d modules beyond the allowed list\n", refused)
		os.Exit(1)
	}
}

// reached names the modules behind every package in dir and below, sorted, as
// "path version". The standard library has no module and is left out.
func reached(dir string) ([]string, error) {
	cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}} {{.Version}}{{end}}", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var modules []string
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		if line := strings.TrimSpace(lines.Text()); line != "" {
			modules = append(modules, line)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(modules) == 0 {
		return nil, fmt.Errorf("no package found in %s", dir)
	}
	slices.Sort(modules)
	return slices.Compact(modules), nil
}
