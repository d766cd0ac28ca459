package main

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed patches
var patches embed.FS

// mutant is one deliberate fault in the source, and the invariant it breaks.
type mutant struct {
	name, breaks string
	what, seen   string
	hunks        []hunk
}

// hunk is a text that stands exactly once in a package, and what stands there
// instead. Which file it is in does not matter.
type hunk struct{ in, from, to string }

// mutants are the deliberate faults for a store. What it does itself and not the
// protocol has a patch of the same name in a folder named after it.
func mutants(store string) ([]mutant, error) {
	files, err := fs.Glob(patches, "patches/*.txt")
	if err != nil {
		return nil, err
	}
	var out []mutant
	for _, file := range files {
		base := path.Base(file)
		text, err := patches.ReadFile(path.Join("patches", store, base))
		if errors.Is(err, fs.ErrNotExist) {
			text, err = patches.ReadFile(file)
		}
		if err != nil {
			return nil, err
		}
		m, err := parse(strings.TrimSuffix(base, ".txt"), string(text))
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b mutant) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

// parse reads a patch: lines "what: ", "seen: " and "breaks: ", then for each
// place "in: " with its package, "--- old", the old lines, "--- new", the new ones, "--- end".
func parse(name, text string) (mutant, error) {
	m := mutant{name: name}
	var h hunk
	var part *string
	for line := range strings.Lines(text) {
		word := strings.TrimSuffix(line, "\n")
		switch {
		case word == "--- old":
			part = &h.from
		case word == "--- new":
			part = &h.to
		case word == "--- end":
			h.from, h.to, part = strings.TrimSuffix(h.from, "\n"), strings.TrimSuffix(h.to, "\n"), nil
			m.hunks = append(m.hunks, h)
		case part != nil:
			*part += line
		default:
			key, value, _ := strings.Cut(word, ": ")
			switch key {
			case "what":
				m.what = value
			case "seen":
				m.seen = value
			case "breaks":
				m.breaks = value
			case "in":
				h = hunk{in: value}
			default:
				return m, fmt.Errorf("%s: a line that is none: %q", name, word)
			}
		}
	}
	if m.what == "" || m.seen == "" || m.breaks == "" || len(m.hunks) == 0 {
		return m, fmt.Errorf("%s: it lacks what, seen, breaks or a place", name)
	}
	return m, nil
}

// overlay writes the changed files and the list of them that go build reads.
// A text that is not there exactly once is an error: the source has moved on
// and the patch has to follow.
func (m mutant) overlay(root, dir string) (string, error) {
	changed := map[string]string{} // by path below root
	for _, h := range m.hunks {
		files, err := filepath.Glob(filepath.Join(root, h.in, "*.go"))
		if err != nil {
			return "", err
		}
		found := 0
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, ok := changed[file]
			if !ok {
				raw, err := os.ReadFile(file)
				if err != nil {
					return "", err
				}
				text = string(raw)
			}
			if n := strings.Count(text, h.from); n > 0 {
				found += n
				changed[file] = strings.Replace(text, h.from, h.to, 1)
			}
		}
		if found != 1 {
			return "", fmt.Errorf("%s no longer applies: %s has its text %d times:\n%s", m.name, h.in, found, h.from)
		}
	}
	list := struct{ Replace map[string]string }{map[string]string{}}
	for file, text := range changed {
		to := filepath.Join(dir, strings.ReplaceAll(strings.TrimPrefix(file, root), "/", "_"))
		if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
			return "", err
		}
		list.Replace[file] = to
	}
	raw, err := json.Marshal(list)
	if err != nil {
		return "", err
	}
	to := filepath.Join(dir, "overlay.json")
	return to, os.WriteFile(to, raw, 0o644)
}
