package server_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/server"
)

// serving runs a node behind a real listener. stop ends it as a signal would,
// and so does the end of the test; a second call does nothing.
func serving(t *testing.T, o server.Options) (url string, stop func()) {
	t.Helper()
	node, err := server.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- node.Serve(ctx, l, 5*time.Second) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("stopped with %v", err)
		}
		if err := node.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return "http://" + l.Addr().String(), stop
}
