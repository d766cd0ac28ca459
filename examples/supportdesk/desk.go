package main

import (
	"context"

	"github.com/memwrite/memwrite-go"
)

// Note is one support note, as its queue message has it.
type Note struct{ ID, Customer, Text string }

// SaveNote writes one support note for its customer, and says what to do with
// the message. It is safe to call again for the same note.
func SaveNote(ctx context.Context, client *memwrite.Client, n Note) (*memwrite.AddResult, memwrite.Verdict) {
	result, err := client.Add(ctx, memwrite.AddRequest{
		Text: n.Text, EndUserID: n.Customer, VerifyText: true,
		Ref: memwrite.NewRef("note", n.ID), // from your record, never generated per attempt
	})
	return result, memwrite.VerdictOf(err)
}
