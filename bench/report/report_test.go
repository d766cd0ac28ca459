package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAPageIsMadeFromFiguresAndFromItsDataAgain(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in.txt")
	err := os.WriteFile(in, []byte("noise\nfigure outage.shared.peak 1.21 <= 1.3 ok\nfigure outage.half.saved 0.54\nfigure sdk.canned.bytes 6650 <= 6500 short\nfigure sqlite.accept_vs_single 5 >= 4 ok\nfigure broken x <= 1 ok\n"), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if err := report(dir, []string{in}); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(filepath.Join(dir, "benchmarks.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| outage.shared.peak | 1.21 | <= 1.3 | ok |", "| outage.half.saved | 0.54 | none |  |", "| sdk.canned.bytes | 6650 | <= 6500 | **short** |", "(benchmarks/sqlite.svg)"} {
		if !strings.Contains(string(first), want) {
			t.Errorf("the page lacks %q:\n%s", want, first)
		}
	}
	svg, err := os.ReadFile(filepath.Join(dir, "benchmarks", "sdk.svg"))
	if err != nil || !strings.Contains(string(svg), "<svg") {
		t.Errorf("the plot: %v", err)
	}
	if err := report(dir, nil); err != nil {
		t.Fatal(err)
	}
	if again, _ := os.ReadFile(filepath.Join(dir, "benchmarks.md")); string(again) != string(first) {
		t.Error("drawn again from its data, the page is another")
	}
	if err := report(t.TempDir(), nil); err == nil {
		t.Error("a page was made of nothing")
	}
}

func TestShares(t *testing.T) {
	for _, row := range []struct {
		f    Figure
		want float64
		ok   bool
	}{
		{Figure{Value: 1.2, Op: "<=", Target: 1.5}, 0.8, true},
		{Figure{Value: 8, Op: ">=", Target: 4}, 0.5, true},
		{Figure{Value: 0, Op: "<=", Target: 0}, 0, false},
		{Figure{Value: 3}, 0, false},
	} {
		got, ok := share(row.f)
		if ok != row.ok || ok && (got < row.want-1e-9 || got > row.want+1e-9) {
			t.Errorf("%+v: %v, %v", row.f, got, ok)
		}
	}
}
