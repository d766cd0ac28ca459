// A worker on a NATS JetStream stream named NOTES.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/contrib/natsworker"
	"github.com/memwrite/memwrite-go/worker"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		slog.Error("the worker ended", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	client, err := memwrite.New(memwrite.FromEnvironment())
	if err != nil {
		return err
	}
	defer client.Close()
	nc, err := nats.Connect(nats.DefaultURL, nats.MaxReconnects(-1))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	w, err := natsworker.New(ctx, js, client, natsworker.Config{
		Stream: "NOTES", Durable: "memwrite", Dead: "dead.notes",
		Worker: worker.Config{Logger: slog.Default()},
	})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}
