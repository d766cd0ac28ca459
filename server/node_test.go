package server_test

import (
	"net/http"
	"testing"

	memwrite "github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/service"
	"github.com/memwrite/memwrite-go/internal/store/memory"
	"github.com/memwrite/memwrite-go/server"
)

func TestANodeServesTheClientAndStops(t *testing.T) {
	t.Parallel()
	url, stop := serving(t, server.Options{
		Store:      memory.New(1),
		Keys:       []service.Key{service.NewKey("ms_test", "default", service.ServiceMemorySync, service.ScopeMemoryAll)},
		Workspaces: []protocol.Workspace{{ID: "default", AddsPerMonth: -1, Credits: -1}},
	})

	for path, want := range map[string]string{"/healthz": "ok\n", "/readyz": "ok\n"} {
		status, body := fetch(t, url+path)
		if status != http.StatusOK || body != want {
			t.Errorf("%s answers %d %q", path, status, body)
		}
	}
	client, err := memwrite.New(memwrite.WithMemorySync(url, "ms_test"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	got, err := client.Add(t.Context(), memwrite.AddRequest{Text: "My team ships releases every Thursday.", EndUserID: "acme", Ref: memwrite.NewRef("note", "1")})
	if err != nil || got.Outcome != memwrite.Stored || got.Memory.Text != "Ships releases every Thursday" {
		t.Errorf("%+v, %v", got, err)
	}
	stop()
}
