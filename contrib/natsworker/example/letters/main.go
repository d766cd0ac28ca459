// Prints the dead letters of the stream NOTES-DEAD, a line of JSON each.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func main() {
	if err := letters(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func letters(ctx context.Context) error {
	nc, err := nats.Connect(nats.DefaultURL)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	stream, err := js.Stream(ctx, "NOTES-DEAD")
	if err != nil {
		return err
	}
	state := stream.CachedInfo().State
	for n := max(state.FirstSeq, 1); n <= state.LastSeq; n++ {
		msg, err := stream.GetMsg(ctx, n)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // removed
		}
		if err != nil {
			return err
		}
		fmt.Println(string(msg.Data))
	}
	return nil
}
