// A worker on RabbitMQ, through Watermill. Another broker is another publisher
// and another subscriber.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-amqp/v3/pkg/amqp"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/contrib/watermillworker"
	"github.com/memwrite/memwrite-go/worker"
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
	log := watermill.NewSlogLogger(slog.Default())
	settings := amqp.NewDurableQueueConfig("amqp://guest:guest@localhost:5672/")
	settings.Publish.ConfirmDelivery = true // a copy is on the broker before its message is acknowledged
	publisher, err := amqp.NewPublisher(settings, log)
	if err != nil {
		return err
	}
	defer publisher.Close()
	subscriber, err := amqp.NewSubscriber(settings, log)
	if err != nil {
		return err
	}
	router, err := message.NewRouter(message.RouterConfig{}, log)
	if err != nil {
		return err
	}
	w, err := watermillworker.New(client, watermillworker.Config{
		Publisher: publisher, Topic: "notes", Dead: "notes.dead",
		Worker: worker.Config{Logger: slog.Default()},
	})
	if err != nil {
		return err
	}
	if err := w.AddTo(router, "notes", subscriber, 8); err != nil {
		return err
	}
	return w.Run(ctx, router)
}
