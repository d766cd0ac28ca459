// Report turns the figures that the benchmarks print into a page with plots.
//
// It reads lines such as
//
//	figure outage.shared.peak 1.2 <= 1.3 ok
//
// from the files named on its command line, keeps them as data beside the
// page, and draws what they say from those data alone: running it again
// without new figures changes nothing.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Figure is one line of a benchmark.
type Figure struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Op     string  `json:"op,omitempty"` // <= or >=, "" for a figure without a target
	Target float64 `json:"target,omitempty"`
	OK     bool    `json:"ok"`
}

// Run is the figures of one run, and where it was.
type Run struct {
	Taken   string   `json:"taken"` // the day
	Machine Machine  `json:"machine"`
	Figures []Figure `json:"figures"`
}

// Machine is what a figure depends on.
type Machine struct {
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"`
	OS    string `json:"os"`
	Go    string `json:"go"`
}

func main() {
	out := flag.String("out", "../docs", "folder of benchmarks.md and of the folder benchmarks beside it")
	flag.Parse()
	if err := report(*out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func report(out string, files []string) error {
	data := filepath.Join(out, "benchmarks", "figures.json")
	if err := os.MkdirAll(filepath.Dir(data), 0o755); err != nil {
		return err
	}
	run, err := load(data)
	if err != nil {
		return err
	}
	if len(files) > 0 {
		run = Run{Taken: time.Now().UTC().Format(time.DateOnly), Machine: here()}
		for _, f := range files {
			figures, err := readFile(f)
			if err != nil {
				return err
			}
			run.Figures = append(run.Figures, figures...)
		}
		if err := save(data, run); err != nil {
			return err
		}
	}
	if len(run.Figures) == 0 {
		return errors.New("there are no figures: name the files that hold them")
	}
	var pictures []Picture
	for _, g := range groups(run.Figures) {
		p, err := drawGroup(filepath.Join(out, "benchmarks"), g)
		if err != nil {
			return err
		}
		pictures = append(pictures, p)
	}
	return os.WriteFile(filepath.Join(out, "benchmarks.md"), page(run, pictures), 0o644)
}

func load(path string) (Run, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return Run{}, nil
	}
	var run Run
	if err == nil {
		err = json.Unmarshal(raw, &run)
	}
	return run, err
}

func save(path string, run Run) error {
	raw, err := json.MarshalIndent(run, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(raw, '\n'), 0o644)
}

func readFile(path string) ([]Figure, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []Figure
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if fig, ok := parse(lines.Text()); ok {
			out = append(out, fig)
		}
	}
	return out, lines.Err()
}

// parse reads one line; false for one that is no figure. A unit after a value
// without a target is passed over.
func parse(line string) (Figure, bool) {
	words := strings.Fields(line)
	if len(words) < 3 || words[0] != "figure" {
		return Figure{}, false
	}
	value, err := number(words[2])
	if err != nil {
		return Figure{}, false
	}
	f := Figure{Name: words[1], Value: value, OK: true}
	if len(words) >= 6 && (words[3] == "<=" || words[3] == ">=" || words[3] == "==") {
		if f.Target, err = number(words[4]); err != nil {
			return Figure{}, false
		}
		f.Op, f.OK = words[3], words[5] == "ok"
	}
	return f, true
}

func number(s string) (float64, error) {
	return strconv.ParseFloat(strings.TrimRight(s, "%ms"), 64)
}

// Group is the figures whose names begin alike.
type Group struct {
	Name    string
	Figures []Figure
}

func groups(all []Figure) []Group {
	by := map[string][]Figure{}
	for _, f := range all {
		name, _, _ := strings.Cut(f.Name, ".")
		by[name] = append(by[name], f)
	}
	out := make([]Group, 0, len(by))
	for name, figures := range by {
		out = append(out, Group{name, figures})
	}
	sort.Slice(out, func(a, b int) bool { return out[a].Name < out[b].Name })
	return out
}

func here() Machine {
	m := Machine{CPU: runtime.GOARCH, Cores: runtime.NumCPU(), OS: runtime.GOOS, Go: runtime.Version()}
	raw, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return m
	}
	for line := range strings.Lines(string(raw)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			m.CPU = strings.TrimSpace(value)
			break
		}
	}
	return m
}
