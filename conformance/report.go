package conformance

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// Outcome is what became of a check.
type Outcome string

// The outcomes.
const (
	Passed Outcome = "passed"
	Failed Outcome = "failed"
	NotRun Outcome = "not run"
)

// Result is one check of a run.
type Result struct {
	Name    string // stable, such as "accept/conflict"
	Promise string // in one sentence
	Point   string // of the contract: service and section
	Outcome Outcome
	Why     string // of Failed and NotRun: what was seen, or what is missing
	Calls   int    // HTTP calls made
	Polls   int    // looks at events that were waited for, on top
	Took    time.Duration
}

// Report is a whole run.
type Report struct {
	Server  string // base URL
	Planned Planned
	Started time.Time
	Took    time.Duration
	Results []Result // in the order of the suite
}

// Count is how many checks came to an outcome.
func (r *Report) Count(o Outcome) int {
	n := 0
	for _, res := range r.Results {
		if res.Outcome == o {
			n++
		}
	}
	return n
}

// OK says that no promise was seen broken.
func (r *Report) OK() bool { return r.Count(Failed) == 0 }

// Failures are the results of promises that were not kept.
func (r *Report) Failures() []Result {
	var out []Result
	for _, res := range r.Results {
		if res.Outcome == Failed {
			out = append(out, res)
		}
	}
	return out
}

// Summary is the run in one line.
func (r *Report) Summary() string {
	calls, polls := 0, 0
	for _, res := range r.Results {
		calls += res.Calls
		polls += res.Polls
	}
	out := fmt.Sprintf("%d passed, %d failed, %d not run (%d calls, %d polls, %s)",
		r.Count(Passed), r.Count(Failed), r.Count(NotRun), calls, polls, r.Took.Round(time.Millisecond))
	if r.OK() && r.Count(Passed) > 0 {
		out = "all passed: " + out
	}
	return out
}

// WriteTable prints one line a check and the summary. It holds no key and no
// more of an answer than its first 200 bytes.
func (r *Report) WriteTable(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "OUTCOME\tCHECK\tCONTRACT\tPROMISE")
	for _, res := range r.Results {
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\n", res.Outcome, res.Name, res.Point, res.Promise)
		if res.Outcome == Failed {
			fmt.Fprintf(out, "\t\t\t  %s\n", res.Why)
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	for _, why := range r.missing() {
		fmt.Fprintln(w, why)
	}
	_, err := fmt.Fprintln(w, r.Summary())
	return err
}

// missing says, once for each reason, how many checks it kept from running.
func (r *Report) missing() []string {
	var reasons []string
	count := map[string]int{}
	for _, res := range r.Results {
		if res.Outcome == NotRun {
			if count[res.Why] == 0 {
				reasons = append(reasons, res.Why)
			}
			count[res.Why]++
		}
	}
	for i, why := range reasons {
		reasons[i] = fmt.Sprintf("%d not run: %s", count[why], why)
	}
	return reasons
}
