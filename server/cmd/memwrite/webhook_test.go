package main

import (
	"context"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	memwrite "github.com/memwrite/memwrite-go"
)

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
	env := environment(t, db, srv.url)
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
