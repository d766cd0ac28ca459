package main

import (
	"fmt"

	"github.com/memwrite/memwrite-go/mockserver"
)

// trouble is one thing armed to go wrong for one note.
type trouble struct {
	line  int
	words string // what the table says when it struck
	armed *mockserver.Armed
}

// plan says what goes wrong for which line of the built-in notes. With other
// notes the same things happen to the same line numbers.
var plan = []struct {
	line  int
	fault mockserver.Fault
	words string
}{
	{2, mockserver.Fault{Kind: mockserver.DropResponse}, "answer lost after commit"},
	{5, mockserver.Fault{Kind: mockserver.Status, Code: 503, RetryAfter: "1"}, "503, Retry-After 1"},
	{6, mockserver.Fault{Kind: mockserver.KillRunner, Point: mockserver.AfterCommit}, "runner killed after commit"},
	{7, mockserver.Fault{Kind: mockserver.LoseWakeup}, "wake-up lost"},
	{10, mockserver.Fault{Kind: mockserver.DropResponse}, "answer lost after commit"},
	{14, mockserver.Fault{Kind: mockserver.KillRunner, Point: mockserver.AfterInference}, "runner killed after inference"},
	{16, mockserver.Fault{Kind: mockserver.DropResponse}, "answer lost after commit"},
	{18, mockserver.Fault{Kind: mockserver.Status, Code: 503, RetryAfter: "1"}, "503, Retry-After 1"},
	{19, mockserver.Fault{Kind: mockserver.KillRunner, Point: mockserver.AfterPlan}, "runner killed after the plan"},
	{20, mockserver.Fault{Kind: mockserver.LoseWakeup}, "wake-up lost"},
	{21, mockserver.Fault{Kind: mockserver.DropResponse}, "answer lost after commit"},
	{22, mockserver.Fault{Kind: mockserver.KillRunner, Point: mockserver.BeforeInference}, "runner killed before inference"},
	{23, mockserver.Fault{Kind: mockserver.Reset}, "connection reset"},
	{24, mockserver.Fault{Kind: mockserver.ProviderTimeout}, "model timed out"},
	{25, mockserver.Fault{Kind: mockserver.FailProjection}, "vectors not written"},
	{26, mockserver.Fault{Kind: mockserver.Truncate, Bytes: 20}, "answer cut short"},
	{28, mockserver.Fault{Kind: mockserver.ProviderInvalid, Times: -1}, "model answered no plan"},
}

// arm arms the plan for the notes it names.
func arm(srv *mockserver.Server, notes []Note) []trouble {
	var out []trouble
	for _, p := range plan {
		for _, n := range notes {
			if n.Line != p.line {
				continue
			}
			fault := p.fault
			fault.Key = n.Name()
			if n.Turn != nil {
				fault.Key = n.Text() // what a turn is recognised by
			}
			out = append(out, trouble{n.Line, p.words, srv.Arm(fault)})
		}
	}
	return out
}

// struck are the troubles of a line that did happen.
func struck(all []trouble, line int) []string {
	var words []string
	for _, t := range all {
		if t.line != line {
			continue
		}
		switch n := t.armed.Fired(); {
		case n > 1:
			words = append(words, fmt.Sprintf("%s (%d times)", t.words, n))
		case n == 1:
			words = append(words, t.words)
		}
	}
	return words
}
