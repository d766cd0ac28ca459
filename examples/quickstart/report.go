package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// row is one line of the table.
type row struct {
	note      Note
	attempts  string
	incidents []string
	outcome   string
	memory    string
}

// totals is the last line. Its String is read by scripts: keep its form.
type totals struct {
	notes, stored, already, skipped, noMemory, failed int
	duplicates, lost, settled, released               int
	balance                                           string
}

func (t totals) String() string {
	return fmt.Sprintf("notes=%d stored=%d already=%d skipped=%d no_memory=%d failed=%d duplicates=%d lost=%d settled=%d released=%d balance=%s",
		t.notes, t.stored, t.already, t.skipped, t.noMemory, t.failed, t.duplicates, t.lost, t.settled, t.released, t.balance)
}

// holds says whether the line is what a run has to end in.
func (t totals) holds() bool {
	return t.stored+t.already+t.skipped+t.noMemory+t.failed == t.notes &&
		t.duplicates == 0 && t.lost == 0 && t.balance == "ok"
}

// count adds up the outcomes. Money and duplicates are counted elsewhere.
func count(rows []row) totals {
	t := totals{notes: len(rows)}
	for _, r := range rows {
		switch r.outcome {
		case outcomeStored:
			t.stored++
		case outcomeAlready:
			t.already++
		case outcomeSkipped:
			t.skipped++
		case outcomeNoMemory:
			t.noMemory++
		case outcomeFailed:
			t.failed++
		default:
			t.lost++
		}
	}
	return t
}

// believed are the rows a client can fill without seeing the server's books.
func believed(notes []Note, w *worker) []row {
	rows := make([]row, 0, len(notes))
	for _, n := range notes {
		r := row{note: n, outcome: outcomeLost, attempts: fmt.Sprintf("%d delivered", w.queue.deliveries(n.Line))}
		if t := w.told[n.Line]; t != nil {
			r.incidents, r.memory = t.incidents, t.memory
			if t.outcome != "" {
				r.outcome = t.outcome
			}
		}
		rows = append(rows, r)
	}
	return rows
}

func printTable(out io.Writer, rows []row) {
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "NOTE\tATTEMPTS\tWHAT WENT WRONG ON THE WAY\tOUTCOME\tMEMORY")
	for _, r := range rows {
		wrong := "–"
		if len(r.incidents) > 0 {
			wrong = strings.Join(r.incidents, ", ")
		}
		memory := r.memory
		if memory == "" {
			memory = "–"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", r.note.Name(), r.attempts, shorten(wrong, 74), r.outcome, shorten(memory, 60))
	}
	tw.Flush()
	fmt.Fprintln(out)
}

func shorten(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
