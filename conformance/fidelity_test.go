package conformance_test

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/memwrite/memwrite-go/conformance"
	"github.com/memwrite/memwrite-go/mockserver"
)

const fidelityPage = "../docs/fidelity.md"

// verdict is how the reference server stands to a point of a live service.
type verdict string

const (
	followed verdict = "followed"
	better   verdict = "deliberately better"
	unknown  verdict = "unknown upstream"
	leftOut  verdict = "not served"
)

// point is one thing a live service does, or says it does.
type point struct {
	section string // of the service's contract
	what    string
	is      verdict
	ours    string   // what the reference server does, where that is not what stands in what
	option  string   // what switches to the live behaviour
	checks  []string // of the suite that see it
}

var services = []struct {
	name     string
	sections []string // that have points about a server
	points   []point
}{
	{"MemorySync", []string{"1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "2.1", "2.2", "3.1", "3.2", "4.1", "4.2", "4.3", "7"}, memorySyncPoints},
	{"FishMem", []string{"1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "1.7", "1.8", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "3", "4.1", "4.2", "4.3", "4.4", "4.5", "4.6", "4.7", "4.8", "8"}, fishMemPoints},
}

// The page is what the suite saw of the reference server in this very run. It
// fails when the committed one differs; `make fidelity` writes it anew.
func TestTheFidelityPageIsWhatTheSuiteSees(t *testing.T) {
	t.Parallel()
	report, err := conformance.Run(t.Context(), config(mockserver.Run(t)))
	if err != nil {
		t.Fatal(err)
	}
	outcome, used := map[string]conformance.Outcome{}, map[string]bool{}
	for _, r := range report.Results {
		outcome[r.Name] = r.Outcome
	}
	var page bytes.Buffer
	page.WriteString(fidelityHead)
	for _, svc := range services {
		count := map[verdict]int{}
		for _, p := range svc.points {
			count[p.is]++
		}
		fmt.Fprintf(&page, "\n## %s\n\n%d points: %d followed, %d deliberately better, %d unknown upstream, %d not served.\n\n", svc.name, len(svc.points), count[followed], count[better], count[unknown], count[leftOut])
		page.WriteString("| point | the live service | reference server | to have the live behaviour | seen by |\n|---|---|---|---|---|\n")
		for _, section := range svc.sections {
			if !slices.ContainsFunc(svc.points, func(p point) bool { return p.section == section }) {
				t.Errorf("%s %s has no point", svc.name, section)
			}
		}
		for _, p := range svc.points {
			if !slices.Contains(svc.sections, p.section) {
				t.Errorf("%s has no section %s", svc.name, p.section)
			}
			if p.is == better && p.option == "" {
				t.Errorf("%s %s does not say how to have the live behaviour: %s", svc.name, p.section, p.what)
			}
			ours := string(p.is)
			if p.ours != "" {
				ours += ": " + p.ours
			}
			var seen []string
			for _, c := range p.checks {
				if outcome[c] != conformance.Passed {
					t.Errorf("%s %s is said to be seen by %s, which %s", svc.name, p.section, c, outcome[c])
				}
				used[c] = true
				seen = append(seen, "`"+c+"`")
			}
			fmt.Fprintf(&page, "| %s | %s | %s | %s | %s |\n", p.section, p.what, ours, p.option, strings.Join(seen, ", "))
		}
	}
	for _, r := range report.Results {
		if !used[r.Name] && !strings.HasPrefix(r.Point, "ours:") {
			t.Errorf("no point names the check %s (%s)", r.Name, r.Point)
		}
	}
	if os.Getenv("MEMWRITE_UPDATE_FIDELITY") != "" && !t.Failed() {
		if err := os.WriteFile(fidelityPage, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	committed, err := os.ReadFile(fidelityPage)
	if err != nil || !bytes.Equal(committed, page.Bytes()) {
		t.Errorf("docs/fidelity.md is not what the suite sees (%v): run make fidelity and look at what changed", err)
	}
}

// An option that the page names is one that exists.
func TestTheFidelityPageNamesOptionsThatExist(t *testing.T) {
	t.Parallel()
	source := ""
	for _, file := range []string{"../mockserver/options.go", "../mockserver/webhook.go", "../mockserver/fault.go", "../server/cmd/memwrite/serve.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source += string(text)
	}
	for _, svc := range services {
		for _, p := range svc.points {
			for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(p.option, -1) {
				want := "func " + strings.TrimPrefix(name[1], "mockserver.") + "("
				if flag, ok := strings.CutPrefix(name[1], "--"); ok {
					want = `"` + flag + `"`
				}
				if !strings.Contains(source, want) {
					t.Errorf("%s %s: there is no %s", svc.name, p.section, name[1])
				}
			}
		}
	}
}

const fidelityHead = `# How near the reference server is to the live services

This page is written by the conformance suite (` + "`make fidelity`" + `): it runs the suite against the reference server and puts what it saw beside what is publicly known of the two live services, by the sections of their contracts. A test fails when page and suite differ. Nothing here was tried against a live service; run ` + "`memwrite conform`" + ` with your own keys to do that.

- **followed**: the reference server does it too.
- **deliberately better**: the live service is known to have a weakness here. The wire is the same; the fourth column says how to have the live behaviour for a test, or why no option brings a fault back: the faults of ` + "`mockserver`" + ` make its effects on a client.
- **unknown upstream**: no public text says what happens. The reference server's choice stands beside it.
- **not served**: not part of writing memories; the path answers 404.
`
