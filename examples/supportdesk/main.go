// Supportdesk is the queue worker's write of a support desk: every note ends in
// its customer's memory once, whatever happens on the way. The write itself is
// in desk.go; this file makes things happen on the way.
//
//	go run ./examples/supportdesk
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/mockserver"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "supportdesk:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	srv, err := mockserver.Start()
	if err != nil {
		return err
	}
	defer srv.Close()
	client, err := memwrite.New(
		memwrite.WithMemorySync(srv.URL, srv.MemorySyncKey),
		memwrite.WithRetryPolicy(memwrite.RetryPolicy{Base: 50 * time.Millisecond}), // the server is next door
	)
	if err != nil {
		return err
	}
	defer client.Close()
	note := Note{"0001", "acme", "My team ships releases every Thursday."}
	say := func(what string, n Note) {
		result, verdict := SaveNote(ctx, client, n)
		outcome := "not stored"
		if verdict.Action == memwrite.Ack {
			outcome = string(result.Outcome)
		}
		fmt.Printf("%s: %s, %s\n", what, outcome, verdict.Action)
	}

	srv.Arm(mockserver.Fault{Kind: mockserver.ExhaustQuota})
	say("the quota drops the note with a 200", note)
	srv.Arm(mockserver.Fault{Kind: mockserver.Status, Code: 429, RetryAfter: "1"})
	say("a rate limit asks for a second", note)
	say("the queue delivers it again", note)
	note.ID = "0002"
	note.Text = "Our office moved from Bristol to Cardiff in May."
	srv.Arm(mockserver.Fault{Kind: mockserver.DropResponse})
	say("the answer gets lost", note)
	note.Text = "Our office moved to Swansea in June."
	say("an edit under the old reference", note)
	srv.Arm(mockserver.Fault{Kind: mockserver.Status, Code: 503, Times: -1})
	say("the service stays down", Note{"0003", "acme", "We prefer invoices as PDF attachments."})
	fmt.Println(len(srv.Records()), "memories")
	return nil
}
