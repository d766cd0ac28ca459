package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A deliberate fault has to follow the source it is put into.
func TestEveryPatchApplies(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for store := range programs {
		all, err := mutants(store)
		if err != nil {
			t.Fatal(err)
		}
		if len(all) < 15 {
			t.Errorf("%d deliberate faults", len(all))
		}
		for _, m := range all {
			if _, err := m.overlay(root, t.TempDir()); err != nil {
				t.Error(err)
			}
			for _, h := range m.hunks {
				if store != "memory" && h.in == "internal/store/memory" {
					t.Errorf("%s is of the store in memory, and %s has none of its own", m.name, store)
				}
			}
		}
	}
}

func TestAPatchThatDoesNotApplyIsRefused(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.go"), []byte("package a\n\nvar x = 1\nvar y = 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for from, want := range map[string]string{"= 2": "0 times", "= 1": "2 times", "x = 1": ""} {
		m := mutant{name: "m", hunks: []hunk{{".", from, "z"}}}
		_, err := m.overlay(root, t.TempDir())
		if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", from, err)
		}
	}
	for _, text := range []string{"", "what: w\nseen: s\nbreaks: I1\n", "what: w\nnonsense\n"} {
		if _, err := parse("m", text); err == nil {
			t.Errorf("%q is taken for a patch", text)
		}
	}
}
