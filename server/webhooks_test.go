package server

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/internal/store/memory"
	"github.com/memwrite/memwrite-go/internal/webhook"
)

func TestAFailedWebhookIsLoggedAndCounted(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	n := &Node{log: slog.New(slog.NewTextHandler(&log, nil)), watch: newWatch(Options{Store: memory.New(1), Scheduler: sched.Real()})}
	d := webhook.Delivery{ID: "dl_1", Workspace: "w", EventID: "task_1", State: webhook.Waiting, Attempts: 1, Status: 503, Next: time.Now()}
	attempt := func(change func(*webhook.Attempt)) string {
		a := webhook.Attempt{Delivery: d, Host: "hook.test", Most: 5}
		change(&a)
		log.Reset()
		n.told(a)
		return log.String()
	}
	for name, tc := range map[string]struct {
		change func(*webhook.Attempt)
		says   []string
	}{
		"delivered": {func(a *webhook.Attempt) { a.State, a.Status = webhook.Told, 200 }, nil},
		"failed":    {func(*webhook.Attempt) {}, []string{"level=WARN", "attempt=1", "of=5", "status=503", "host=hook.test", "event=task_1", "next="}},
		"no answer": {func(a *webhook.Attempt) { a.Status, a.Err = 0, errors.New("connection refused") }, []string{"level=WARN", "status=0", `error="connection refused"`}},
		"given up":  {func(a *webhook.Attempt) { a.State, a.Attempts = webhook.GivenUp, 5 }, []string{"level=ERROR", "attempt=5", "status=503", "given up"}},
	} {
		said := attempt(tc.change)
		for _, want := range tc.says {
			if !strings.Contains(said, want) {
				t.Errorf("%s: the log lacks %s: %s", name, want, said)
			}
		}
		if tc.says == nil && said != "" {
			t.Errorf("%s: %s", name, said)
		}
	}
	page := httptest.NewRecorder()
	n.watch.metrics.ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{`{outcome="delivered"} 1`, `{outcome="failed"} 2`, `{outcome="given_up"} 1`} {
		if !strings.Contains(page.Body.String(), "memwrite_webhooks_total"+want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
}
