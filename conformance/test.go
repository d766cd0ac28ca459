package conformance

import "context"

// TB is the part of testing.TB that Test uses.
type TB interface {
	Helper()
	Context() context.Context
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Test runs the suite in a test and fails it for every promise that is not
// kept. It gives the report for more.
func Test(t TB, cfg Config) *Report {
	t.Helper()
	report, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatalf("%v", err)
		return report
	}
	for _, r := range report.Results {
		switch r.Outcome {
		case Failed:
			t.Errorf("%s (%s): %s: %s", r.Name, r.Point, r.Promise, r.Why)
		case NotRun:
			t.Logf("%s not run: %s", r.Name, r.Why)
		}
	}
	t.Logf("%s", report.Summary())
	return report
}
