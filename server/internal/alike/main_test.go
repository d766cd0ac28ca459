package alike_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain makes the sequences fewer than rapid's own number, which would take
// minutes on three stores; -rapid.checks asks for more.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		checks := "20"
		if testing.Short() {
			checks = "5"
		}
		_ = flag.Set("rapid.checks", checks)
	}
	os.Exit(m.Run())
}
