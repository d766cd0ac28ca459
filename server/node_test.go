package server_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/service"
	"github.com/memwrite/memwrite-go/internal/store/memory"
	"github.com/memwrite/memwrite-go/server"
)

func TestANodeServesTheClientAndStops(t *testing.T) {
	t.Parallel()
	node, err := server.New(t.Context(), server.Options{
		Store:      memory.New(1),
		Keys:       []service.Key{service.NewKey("ms_test", "default", service.ServiceMemorySync, service.ScopeMemoryAll)},
		Workspaces: []protocol.Workspace{{ID: "default", AddsPerMonth: -1, Credits: -1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- node.Serve(ctx, l, 5*time.Second) }()

	for path, want := range map[string]string{"/healthz": "ok\n", "/readyz": "ok\n"} {
		res, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != http.StatusOK || string(body) != want {
			t.Errorf("%s answers %d %q", path, res.StatusCode, body)
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
	if err := <-ended; err != nil {
		t.Errorf("stopped with %v", err)
	}
	if err := node.Close(); err != nil {
		t.Error(err)
	}
}
