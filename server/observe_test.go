package server_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/service"
	"github.com/memwrite/memwrite-go/internal/store/memory"
	"github.com/memwrite/memwrite-go/server"
)

// once strikes each of its faults once, in order.
type once struct {
	mu    sync.Mutex
	armed map[protocol.Point][]protocol.Fault
}

func (o *once) At(p protocol.Point, _ protocol.Task) protocol.Fault {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.armed[p]) == 0 {
		return protocol.Fault{}
	}
	f := o.armed[p][0]
	o.armed[p] = o.armed[p][1:]
	return f
}

func fetch(t *testing.T, url string) (int, string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

func TestANodeIsWatched(t *testing.T) {
	t.Parallel()
	faults := &once{armed: map[protocol.Point][]protocol.Fault{
		protocol.AfterCommit: {{Act: protocol.Kill}},
		protocol.Inference:   {{}, {Act: protocol.FailWith, Failure: protocol.Fail(protocol.InvalidOutput, "no plan")}},
	}}
	opts := server.Options{
		Store: memory.New(1), Faults: faults, Inspect: true, Metrics: true, InspectorToken: "let me in",
		Keys:       []service.Key{service.NewKey("fm_test", "default", service.ServiceFishMem, service.ScopeMemoryRead, service.ScopeMemoryWrite, service.ScopeOperationsRead)},
		Workspaces: []protocol.Workspace{{ID: "default", AddsPerMonth: -1, Credits: 4}},
	}
	opts.Limits.Lease, opts.Limits.RepairEvery = 200*time.Millisecond, 50*time.Millisecond
	url, stop := serving(t, opts)
	client, err := memwrite.New(memwrite.WithFishMem(url, "fm_test"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()

	const text = "My team ships releases every Thursday."
	write := func(key, text string) (*memwrite.Event, error) {
		return client.AddAndWait(t.Context(), memwrite.InferRequest{Key: memwrite.NewRef("note", key), Scope: memwrite.Scope{UserID: "sam"}, Content: text})
	}
	e, err := write("1", text)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = write("1", text)                              // a replay
	_, _ = write("1", "Another text under this key.")    // a conflict
	_, _ = write("2", "This one fails: no plan for it.") // a failure that is refunded
	if _, err := write("3", "Uses the credits up."); err != nil {
		t.Fatal(err)
	}
	_, _ = write("4", "There is nothing left.") // refused

	wanted := []string{
		`memwrite_accepts_total{operation="memory_infer"} 3`,
		`memwrite_replays_total{operation="memory_infer"} 1`,
		`memwrite_conflicts_total{operation="memory_infer"} 1`,
		`memwrite_refusals_total{operation="memory_infer"} 1`,
		`memwrite_claims_total 4`,
		`memwrite_reclaims_total 1`,
		`memwrite_fenced_writes_total 0`,
		`memwrite_attempts_failed_total{class="invalid_output"} 1`,
		`memwrite_attempts_failed_total{class="interrupted"} 1`,
		`memwrite_tasks_ended_total{state="SUCCEEDED"} 2`,
		`memwrite_tasks_ended_total{state="FAILED"} 1`,
		`memwrite_reservations_ended_total{as="settle"} 2`,
		`memwrite_reservations_ended_total{as="release"} 1`,
		`memwrite_queue_depth{state="PENDING"} 0`,
		`memwrite_queue_age_seconds 0`,
		`memwrite_leases 0`,
		`memwrite_sse_clients 0`,
		`memwrite_latency_seconds_count 3`,
	}
	// A step is told after it was written, so the last one may be on its way.
	var page, lacks string
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		lacks = ""
		if _, page = fetch(t, url+"/metrics"); page == "" {
			continue
		}
		for _, want := range wanted {
			if !strings.Contains(page, want+"\n") {
				lacks = want
			}
		}
		if lacks == "" {
			break
		}
	}
	if lacks != "" {
		t.Errorf("/metrics lacks %s:\n%q", lacks, regexp.MustCompile(`(?m)^memwrite.*$`).FindAllString(page, -1))
	}
	if strings.Contains(page, `"sam"`) || strings.Contains(page, "Thursday") || strings.Contains(page, "note-1") {
		t.Error("/metrics tells what it must not")
	}
	if status, page := fetch(t, url+"/_inspector/writes/"+e.ID); status != http.StatusOK || !strings.Contains(page, "reclaimed by") {
		t.Errorf("the inspector answers %d", status)
	}
	if _, page := fetch(t, url+"/_inspector/requests"); !strings.Contains(page, "duplicate of 1") || !strings.Contains(page, "conflict of 1") || !strings.Contains(page, "POST /v1/memories") || strings.Contains(page, "Thursday") {
		t.Errorf("the requests: %s", page)
	}
	if status, _ := fetch(t, url+"/_inspector/faults"); status != http.StatusNotFound {
		t.Errorf("a server that is no test offers faults: %d", status)
	}

	streams := &http.Client{Transport: &http.Transport{}}
	for range 10 {
		res, err := streams.Get(url + "/_inspector/live")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if _, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	if _, page := fetch(t, url+"/metrics"); !strings.Contains(page, "memwrite_sse_clients 10\n") {
		t.Error("the open pages are not counted")
	}
	stop() // the streams would have held it for its 5 s of grace
}

// Each query of the dashboard asks for a metric there is.
func TestTheDashboardAsksForWhatIsThere(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("grafana/memwrite.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(raw, &dashboard); err != nil || len(dashboard.Panels) == 0 {
		t.Fatalf("%d panels, %v", len(dashboard.Panels), err)
	}
	source, err := os.ReadFile("metrics/metrics.go")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile(`"(memwrite_[a-z_]+)"`).FindAllStringSubmatch(string(source), -1) {
		named[m[1]] = true
	}
	asked := map[string]bool{}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			for _, m := range regexp.MustCompile(`memwrite_[a-z_]+`).FindAllString(target.Expr, -1) {
				m = strings.TrimSuffix(m, "_bucket")
				asked[m] = true
				if !named[m] {
					t.Errorf("%s asks for %s, which is not exported", p.Title, m)
				}
			}
		}
	}
	for m := range named {
		if !asked[m] {
			t.Errorf("%s is on no panel", m)
		}
	}
}
