package worker_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// The programs of the page are those that are compiled with their modules.
func TestThePageShowsTheProgramsThatAreCompiled(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/workers.md")
	if err != nil {
		t.Fatal(err)
	}
	var shown, compiled []string
	for _, block := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		shown = append(shown, block[1])
	}
	workers, _ := filepath.Glob("../contrib/*worker/example/main.go")
	var files []string
	for _, file := range workers { // each with the programs beside it
		beside, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*", "main.go"))
		slices.Reverse(beside) // publish, then read letters
		files = append(append(files, file), beside...)
	}
	for _, file := range files {
		program, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		compiled = append(compiled, string(program))
	}
	if len(workers) != 3 || !slices.Equal(shown, compiled) {
		t.Errorf("the page has %d programs, contrib has %d, and they are not the same", len(shown), len(compiled))
	}
}
