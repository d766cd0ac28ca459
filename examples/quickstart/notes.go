package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/memwrite/memwrite-go"
	record "github.com/memwrite/memwrite-go/worker"
)

// Note is one line of the notes file: what a support desk knows and wants
// remembered for its customer. It is a record as queue workers and
// `memwrite ingest` read them: a fact for Add, a turn of a conversation for
// AddTurn, or free text for AddAndWait.
type Note struct {
	record.Record

	// Line is where the note stands in its file, from 1.
	Line int
}

// Ref names the note, not an attempt to write it: the same note has the same
// reference today, after a crash and after a redelivery. An edit has its own.
// A turn has none; it is known by its speaker, time and text.
func (n Note) Ref() memwrite.Ref {
	switch {
	case n.Add != nil:
		return n.Add.Ref
	case n.Infer != nil:
		return n.Infer.Key
	}
	return memwrite.Ref{}
}

// Name is what the table calls the note.
func (n Note) Name() string { return n.Identity() }

// Text is what is to be remembered.
func (n Note) Text() string {
	switch {
	case n.Add != nil:
		return n.Add.Text
	case n.Turn != nil:
		return n.Turn.Text
	case n.Infer != nil:
		return n.Infer.Content
	}
	return ""
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
		if note.Record, err = record.Decode(line); err == nil {
			err = note.check()
		}
		if err != nil {
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
	case n.Verbatim:
		return errors.New("write verbatim is not shown here; add, turn and infer are")
	case n.Text() == "":
		return errors.New("text is missing")
	case n.EndUser() == "", n.Infer != nil && n.Infer.Scope == (memwrite.Scope{}):
		return errors.New("end_user is missing")
	}
	return nil
}
