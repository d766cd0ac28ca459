package mockserver_test

import (
	"context"
	"fmt"
	"log"

	memwrite "github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/mockserver"
)

// The answer of the first try gets lost after the server stored the note. The
// client sends it again, and the server recognises its reference.
func Example() {
	srv, err := mockserver.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	client, err := memwrite.New(memwrite.WithMemorySync(srv.URL, srv.MemorySyncKey))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	srv.Arm(mockserver.Fault{Kind: mockserver.DropResponse, Key: "note-0001"})
	result, err := client.Add(context.Background(), memwrite.AddRequest{
		EndUserID: "acme",
		Text:      "My team ships releases every Thursday.",
		Ref:       memwrite.RefFromString("note-0001"),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("tries:", result.Tries, "records:", len(srv.Records()), srv.Records()[0].Text)
	// Output: tries: 2 records: 1 Ships releases every Thursday
}
