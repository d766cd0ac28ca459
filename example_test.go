package memwrite_test

import (
	"context"
	"fmt"
	"log"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/mockserver"
)

// start gives the examples a server and a client of it. A test writes
// mockserver.Run(t) and srv.Client(t) instead.
func start() (*mockserver.Server, *memwrite.Client) {
	srv, err := mockserver.Start()
	if err != nil {
		log.Fatal(err)
	}
	client, err := memwrite.New(memwrite.WithMemorySync(srv.URL, srv.MemorySyncKey), memwrite.WithFishMem(srv.URL, srv.FishMemKey))
	if err != nil {
		log.Fatal(err)
	}
	return srv, client
}

func ExampleClient_Add() {
	srv, client := start()
	defer srv.Close()
	defer client.Close()

	for range 2 {
		result, err := client.Add(context.Background(), memwrite.AddRequest{
			Text:      "My team ships releases every Thursday.",
			EndUserID: "acme",
			Ref:       memwrite.NewRef("note", "0001"), // from your record, never generated per attempt
		})
		if err != nil {
			log.Fatal(err)
		}
		switch result.Outcome {
		case memwrite.Stored:
			fmt.Println("stored:", result.Memory.Text)
		case memwrite.AlreadyIngested:
			fmt.Println("was there already, as", len(result.MemoryIDs), "memory")
		case memwrite.Skipped:
			fmt.Println("nothing worth storing:", result.Reason)
		}
	}
	// Output:
	// stored: Ships releases every Thursday
	// was there already, as 1 memory
}

func ExampleClient_AddTurn() {
	srv, client := start()
	defer srv.Close()
	defer client.Close()

	for range 2 {
		receipt, err := client.AddTurn(context.Background(), memwrite.TurnRequest{
			TenantID:   "default",
			UserID:     "sam",
			Text:       "I ran my first 10K last weekend and finished in 58 minutes.",
			Role:       "user",
			Speaker:    "sam",
			OccurredAt: "2026-06-16T09:30:00Z", // as stored with the message, byte for byte
		})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(receipt.ProcessingStatus)
	}
	// Output:
	// distilling
	// skipped_replay
}

func ExampleClient_AddAndWait() {
	srv, client := start()
	defer srv.Close()
	defer client.Close()

	event, err := client.AddAndWait(context.Background(), memwrite.InferRequest{
		Key:     memwrite.NewRef("note", "0101"),
		Scope:   memwrite.Scope{UserID: "fjord"},
		Content: "Our fiscal year ends on the thirtieth of September.",
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range event.Results {
		fmt.Println(event.Status, r.Memory)
	}
	// Output:
	// SUCCEEDED Fiscal year ends on the thirtieth of September
}

func ExampleVerdictOf() {
	srv, client := start()
	defer srv.Close()
	defer client.Close()
	srv.Arm(mockserver.Fault{Kind: mockserver.ProviderInvalid, Times: -1})

	_, err := client.AddAndWait(context.Background(), memwrite.InferRequest{
		Key:     memwrite.NewRef("note", "0109"),
		Scope:   memwrite.Scope{UserID: "iris"},
		Content: "A page that no reader can make sense of.",
	})
	fmt.Println(memwrite.VerdictOf(err).Action)
	// Output:
	// dead-letter
}
