package conformance_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/memwrite/memwrite-go/conformance"
	"github.com/memwrite/memwrite-go/mockserver"
)

// left is what a run must not leave behind: memories, armed faults, a degraded
// health.
func left(t *testing.T, srv *mockserver.Server, cfg conformance.Config) []string {
	t.Helper()
	var out []string
	for _, r := range srv.Records() {
		if !r.Deleted {
			out = append(out, "memory of "+r.EndUser)
		}
	}
	for _, task := range srv.Tasks() {
		if task.State != "SUCCEEDED" && (task.State != "FAILED" || task.Operation == "infer") {
			out = append(out, task.Operation+" task "+task.State)
		}
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/v1/health", nil)
	req.Header.Set("Authorization", "Bearer "+cfg.FishMem.Key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	_, _ = body.ReadFrom(resp.Body)
	if !strings.Contains(body.String(), `"status":"ok"`) {
		out = append(out, body.String())
	}
	return out
}

func outcomes(r *conformance.Report) []string {
	out := make([]string, len(r.Results))
	for i, res := range r.Results {
		out[i] = res.Name + " " + string(res.Outcome)
	}
	return out
}

func TestTwiceInARowAndInParallelGiveTheSame(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	cfg := config(srv)
	before := srv.Now()
	first := conformance.Test(t, cfg)
	want := outcomes(first)
	if again := outcomes(conformance.Test(t, cfg)); !slices.Equal(again, want) {
		t.Errorf("the second run differs:\n%s\n%s", want, again)
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if got := outcomes(conformance.Test(t, cfg)); !slices.Equal(got, want) {
				t.Errorf("a run beside others differs:\n%s\n%s", want, got)
			}
		})
	}
	all.Wait()
	if found := left(t, srv, cfg); len(found) > 0 {
		t.Errorf("%d things are left: %s", len(found), found)
	}
	if moved := srv.Now().Sub(before); moved > first.Took*20+60e9 {
		t.Errorf("the server's clock was moved by %s", moved)
	}
	if err := srv.Check(); err != nil {
		t.Error(err)
	}
}

func TestAPlanIsKept(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	cfg := config(srv)
	var told conformance.Planned
	cfg.Planned = func(p conformance.Planned) error {
		if n := len(srv.Tasks()); n > 0 {
			t.Errorf("%d writes before the plan was told", n)
		}
		told = p
		return nil
	}
	report := conformance.Test(t, cfg)
	calls := 0
	for _, r := range report.Results {
		calls += r.Calls
	}
	if calls > told.Calls || calls < told.Calls*8/10 {
		t.Errorf("%d calls, %d were planned", calls, told.Calls)
	}
	credits, adds := int64(0), int64(0)
	for _, task := range srv.Tasks() {
		switch task.Operation {
		case "infer":
			credits += 2
		case "verbatim":
			credits++
		case "add", "turn":
			if task.State == "SUCCEEDED" {
				adds++
			}
		}
	}
	if credits > int64(told.Credits) || credits < int64(told.Credits)*7/10 {
		t.Errorf("%d credits were spent, %d were planned", credits, told.Credits)
	}
	if adds > int64(told.Adds) || adds < int64(told.Adds)*8/10 {
		t.Errorf("%d adds were spent, %d were planned", adds, told.Adds)
	}

	refuse := errors.New("too dear")
	cfg.Planned = func(conformance.Planned) error { return refuse }
	n := len(srv.Tasks())
	if _, err := conformance.Run(t.Context(), cfg); !errors.Is(err, refuse) {
		t.Error("a refused plan ends with", err)
	}
	if got := len(srv.Tasks()); got != n {
		t.Errorf("%d writes after the plan was refused", got-n)
	}
}

// A live service is one that is not on this machine: here by its name alone.
func TestALiveServiceIsNotWrittenToUnlessAllowed(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	cfg := config(srv)
	cfg.ControlURL = ""
	cfg.MemorySync.URL, cfg.FishMem.URL = "http://memory.example", "http://memory.example"
	cfg.Pace = 1 // nanosecond
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, strings.TrimPrefix(srv.URL, "http://"))
	}
	cfg.HTTPClient = &http.Client{Transport: &http.Transport{DialContext: dial}}
	report := conformance.Test(t, cfg)
	if n := len(srv.Tasks()); n > 0 || report.Planned.Writes || report.Planned.Credits > 0 {
		t.Errorf("%d writes on a live service, planned %+v", n, report.Planned)
	}
	if n := report.Count(conformance.Passed); n < 10 {
		t.Errorf("%d checks of what can be read", n)
	}
	cfg.AllowWrites = true
	cfg.Only = []string{"accept/", "add/", "billing/"}
	report = conformance.Test(t, cfg)
	if n := len(srv.Tasks()); n == 0 || !report.Planned.Writes || !report.OK() {
		t.Errorf("%d writes on a live service that may be written to", n)
	}
}

func TestTheReportIsReadable(t *testing.T) {
	t.Parallel()
	srv := newSecond(t, "add/repeat")
	cfg := srv.config()
	cfg.OtherFishMemKey = ""
	cfg.Only = []string{"add/", "isolation/", "errors/fishmem-auth"}
	report, err := conformance.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	var table, junit bytes.Buffer
	if err := errors.Join(report.WriteTable(&table), report.WriteJUnit(&junit)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"failed   add/repeat", "not run  isolation/fishmem", "no FishMem key of another workspace", "1 failed, 2 not run"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, table.String())
		}
	}
	var doc struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Skipped  int `xml:"skipped,attr"`
		Cases    []struct {
			Group   string  `xml:"classname,attr"`
			Name    string  `xml:"name,attr"`
			Failure *string `xml:"failure"`
			Skipped *string `xml:"skipped"`
		} `xml:"testcase"`
	}
	if err := xml.Unmarshal(junit.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Tests != len(report.Results) || len(doc.Cases) != doc.Tests || doc.Failures != 1 || doc.Skipped != 2 {
		t.Errorf("JUnit counts %+v", doc)
	}
	for _, c := range doc.Cases {
		if (c.Failure != nil) != (c.Group == "conformance.add" && c.Name == "repeat") {
			t.Errorf("JUnit case %+v", c)
		}
	}
	for _, key := range []string{msKey, fmKey, otherMSKey} {
		if strings.Contains(table.String()+junit.String(), key) {
			t.Errorf("the report holds the key %s", key)
		}
	}
}

// A failure where a live service is known to differ says so.
func TestAKnownDifferenceIsNamed(t *testing.T) {
	t.Parallel()
	cfg := newSecond(t, "accept/mode").config()
	cfg.Only = []string{"accept/mode"}
	report, err := conformance.Run(t.Context(), cfg)
	if err != nil || len(report.Failures()) != 1 || !strings.Contains(report.Failures()[0].Why, "known of the live service") {
		t.Errorf("%v %+v", err, report)
	}
}

func TestABadConfigurationIsRefused(t *testing.T) {
	t.Parallel()
	good := conformance.Endpoint{URL: "http://127.0.0.1:1", Key: "k"}
	for name, cfg := range map[string]conformance.Config{
		"nothing":      {},
		"no key":       {FishMem: conformance.Endpoint{URL: good.URL}},
		"no scheme":    {FishMem: conformance.Endpoint{URL: "fishmem.com", Key: "k"}},
		"a query":      {FishMem: conformance.Endpoint{URL: good.URL + "?key=1", Key: "k"}},
		"bad control":  {FishMem: good, ControlURL: "::"},
		"user in it":   {MemorySync: conformance.Endpoint{URL: "http://a:b@127.0.0.1", Key: "k"}},
		"other scheme": {MemorySync: conformance.Endpoint{URL: "ftp://127.0.0.1", Key: "k"}},
	} {
		if _, err := conformance.Plan(t.Context(), cfg); !errors.Is(err, conformance.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := conformance.Plan(t.Context(), conformance.Config{FishMem: good}); err == nil || errors.Is(err, conformance.ErrConfig) {
		t.Error("a server that is not there:", err)
	}
}

// Without a control API the books are /v1/usage, which does not tell keys
// apart.
func TestBillingIsSeenInUsageToo(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	cfg := config(srv)
	cfg.ControlURL, cfg.Only = "", []string{"billing/"}
	report := conformance.Test(t, cfg)
	if n := report.Count(conformance.Passed); n != 3 {
		t.Errorf("%d checks passed: %v", n, outcomes(report))
	}
	calls := 0
	for _, r := range report.Results {
		calls += r.Calls
	}
	if calls != report.Planned.Calls {
		t.Errorf("%d calls, %d were planned", calls, report.Planned.Calls)
	}
}
