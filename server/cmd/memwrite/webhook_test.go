package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
)

// inferred makes one inferred write, and waits for its end.
func inferred(t *testing.T, db, url string) *memwrite.Event {
	t.Helper()
	env := environment(t, db, url)
	client, err := memwrite.New(memwrite.WithFishMem(env["FISHMEM_BASE_URL"], env["FISHMEM_API_KEY"]))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ev, err := client.AddAndWait(t.Context(), memwrite.InferRequest{
		Content: "My team ships releases every Thursday.", Scope: memwrite.Scope{UserID: "acme"}, Key: memwrite.NewRef("note", "1"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return ev
}

func TestServeTellsAWebhookOfWhatSucceeded(t *testing.T) {
	t.Parallel()
	const secret = "whsec_of_a_serve_test"
	told := make(chan memwrite.MemoryAdded, 1)
	hook, err := memwrite.NewWebhookHandler(memwrite.WebhookOptions{
		WebhookVerifier: memwrite.WebhookVerifier{Secrets: []string{secret}},
		Handle: func(_ context.Context, e memwrite.WebhookEvent) error {
			if m, ok := e.MemoryAdded(); ok {
				told <- m
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	target := httptest.NewServer(hook)
	t.Cleanup(target.Close)
	db := filepath.Join(t.TempDir(), "memwrite.db")
	srv := start(t, "--db", db, "--webhook-url", target.URL, "--webhook-secret", secret)
	ev := inferred(t, db, srv.url)
	select {
	case m := <-told:
		if m.EventID != ev.ID || m.UserID != "acme" {
			t.Errorf("told of %+v", m)
		}
	case <-t.Context().Done():
		t.Fatal("nobody was told")
	}
	if strings.Contains(srv.log.String(), secret) {
		t.Error("the log holds the secret")
	}
}

// An endpoint that fails is seen in the log and in the metrics, without what its
// URL hides.
func TestServeSaysThatAWebhookFailed(t *testing.T) {
	t.Parallel()
	const secret = "whsec_of_a_serve_test"
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	t.Cleanup(target.Close)
	db := filepath.Join(t.TempDir(), "memwrite.db")
	srv := start(t, "--db", db, "--metrics", "--webhook-url", target.URL+"/path-secret?token=query-secret", "--webhook-secret", secret)
	ev := inferred(t, db, srv.url)
	failed := func() bool {
		res, err := http.Get(srv.url + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		page, err := io.ReadAll(res.Body)
		return err == nil && strings.Contains(string(page), `memwrite_webhooks_total{outcome="failed"} 1`+"\n")
	}
	for !failed() || !strings.Contains(srv.log.String(), "will be tried again") {
		select {
		case <-t.Context().Done():
			t.Fatalf("it is not seen\n%s", srv.log)
		case <-time.After(10 * time.Millisecond):
		}
	}
	said := srv.log.String()
	for _, want := range []string{"level=WARN", "attempt=1 of=5 status=502", "event=" + ev.ID, "host=" + strings.TrimPrefix(target.URL, "http://")} {
		if !strings.Contains(said, want) {
			t.Errorf("the log lacks %s:\n%s", want, said)
		}
	}
	for _, hidden := range []string{secret, "path-secret", "query-secret"} {
		if strings.Contains(said, hidden) {
			t.Errorf("the log holds %s:\n%s", hidden, said)
		}
	}
}
