package memwrite_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	memwrite "github.com/memwrite/memwrite-go"
)

func ExampleNewRef() {
	ref := memwrite.NewRef("note", "0001")
	fmt.Println(ref)
	fmt.Println(ref.Version(2))
	fmt.Println(memwrite.NewRef("note", "0001-v2"), "is another record")
	fmt.Println(memwrite.NewRef("Note", "1").Err())
	// Output:
	// note-0001
	// note-0001-v2
	// note-~0001~2dv2 is another record
	// memwrite: NewRef: invalid input: ref: kind has a character outside a-z, 0-9 and _
}

func ExampleClient_WaitForEvent() {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			respond(w, 202, `{"message":"accepted","status":"PENDING","event_id":"task_1"}`)
			return
		}
		respond(w, 200, `{"id":"task_1","status":"SUCCEEDED","results":[{"id":"m1","memory":"Ships releases every Thursday","event":"ADD"}]}`)
	}))
	defer srv.Close()
	client, err := memwrite.New(memwrite.WithFishMem(srv.URL, "fm_key"))
	if err != nil {
		panic(err)
	}
	defer client.Close()
	receipt, err := client.AddAsync(context.Background(), memwrite.InferRequest{
		Key: memwrite.NewRef("note", "0001"), Scope: memwrite.Scope{UserID: "acme"}, Content: "My team ships releases every Thursday.",
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(receipt.Status) // accepted, not stored
	event, err := client.WaitForEvent(context.Background(), receipt.EventID)
	if err != nil {
		panic(err)
	}
	fmt.Println(event.Status, event.NoMemory(), event.Results[0].Memory)
	// Output:
	// PENDING
	// SUCCEEDED false Ships releases every Thursday
}
