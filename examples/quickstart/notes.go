package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/memwrite/memwrite-go"
)

// The kinds of line a notes file may hold.
const (
	kindNote     = "note"     // one fact, written with Add
	kindTurn     = "turn"     // one turn of a conversation, written with AddTurn
	kindInferred = "inferred" // free text, written with AddAndWait
)

// Note is one line of the notes file: what a support desk knows and wants
// remembered for its customer.
type Note struct {
	ID       string `json:"id"`
	Version  int    `json:"version"` // 0 for a note nobody edited
	Customer string `json:"customer"`
	Kind     string `json:"kind"`
	Text     string `json:"text"`

	// Turns only. They are the turn's identity together with the text, so they
	// come from the file and never from a clock.
	Role       string `json:"role"`
	Speaker    string `json:"speaker"`
	OccurredAt string `json:"occurred_at"`

	// Line is where the note stands in its file, from 1.
	Line int `json:"-"`
}

// Ref names the note, not an attempt to write it: the same note has the same
// reference today, after a crash and after a redelivery. An edit has its own.
func (n Note) Ref() memwrite.Ref {
	ref := memwrite.NewRef("note", n.ID)
	if n.Version > 0 {
		ref = ref.Version(n.Version)
	}
	return ref
}

// Name is what the table calls the note.
func (n Note) Name() string {
	if n.Kind == kindTurn {
		return n.ID
	}
	return n.Ref().String()
}

// readNotes reads one JSON object a line. Empty lines are skipped; a line that
// is not a note names itself in the error, without its text.
func readNotes(r io.Reader) ([]Note, error) {
	all, err := io.ReadAll(io.LimitReader(r, 16<<20))
	if err != nil {
		return nil, err
	}
	var notes []Note
	for i, line := range bytes.Split(all, []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		note := Note{Line: i + 1}
		if err := json.Unmarshal(line, &note); err != nil {
			return nil, fmt.Errorf("line %d is not a note: %w", i+1, err)
		}
		if err := note.check(); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		notes = append(notes, note)
	}
	if len(notes) == 0 {
		return nil, errors.New("the file holds no notes")
	}
	return notes, nil
}

func (n Note) check() error {
	switch {
	case n.ID == "":
		return errors.New("id is missing")
	case n.Customer == "":
		return errors.New("customer is missing")
	case n.Text == "":
		return errors.New("text is missing")
	case n.Kind != kindNote && n.Kind != kindTurn && n.Kind != kindInferred:
		return fmt.Errorf("kind %q is not note, turn or inferred", n.Kind)
	case n.Kind == kindTurn && (n.Speaker == "" || n.OccurredAt == ""):
		return errors.New("a turn needs speaker and occurred_at: without them a second send is a second turn")
	}
	return n.Ref().Err()
}
