// Makes the stream NOTES, when it is not there, and publishes one note.
package main

import (
	"context"
	"log"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func main() {
	if err := publish(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func publish(ctx context.Context) error {
	nc, err := nats.Connect(nats.DefaultURL)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	// A work queue drops a message when it is acknowledged.
	_, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: "NOTES", Subjects: []string{"notes"}, Retention: jetstream.WorkQueuePolicy,
	})
	if err != nil {
		return err
	}
	_, err = js.Publish(ctx, "notes", []byte(`{"kind":"note","id":"0001","end_user":"acme","text":"My team ships releases every Thursday."}`))
	return err
}
