// Firstwrite is the smallest whole program: one memory, written so that running
// the program again changes nothing. It takes the service from
// MEMORYSYNC_BASE_URL and MEMORYSYNC_API_KEY, and without them starts a server
// of its own.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/mockserver"
)

func main() {
	service := memwrite.FromEnvironment()
	if os.Getenv("MEMORYSYNC_BASE_URL") == "" {
		srv, err := mockserver.Start()
		if err != nil {
			log.Fatal(err)
		}
		defer srv.Close()
		service = memwrite.WithMemorySync(srv.URL, srv.MemorySyncKey)
	}
	client, err := memwrite.New(service)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	result, err := client.Add(context.Background(), memwrite.AddRequest{
		Text:      "My team ships releases every Thursday.",
		EndUserID: "acme",
		Ref:       memwrite.NewRef("note", "0001"),
	})
	if err != nil {
		log.Fatal(err) // nothing of the key or the text is in it
	}
	fmt.Println(result.Outcome, result.MemoryIDs)
}
