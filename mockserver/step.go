package mockserver

import (
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// Step is one thing that happened to a write. It holds nothing of the input.
type Step struct {
	Kind        string    `json:"kind"` // accepted, replayed, conflict, refused, claimed, reclaimed, planned, committed, projected, retrying, succeeded, failed, fenced, redriven or unfinished
	At          time.Time `json:"at"`   // on the server's clock
	TaskID      string    `json:"task_id"`
	Operation   string    `json:"operation"` // as of a Task
	Attempt     int       `json:"attempt"`
	Class       string    `json:"class,omitempty"`       // of the failure of retrying, failed and reclaimed
	Traceparent string    `json:"traceparent,omitempty"` // of the request that brought the write
}

// OnStep tells f of every step of every write, in the goroutine that made it:
// f must return quickly and must not call the server. Steps of one attempt
// come in order; that of an acceptance may come after its first claim.
func OnStep(f func(Step)) Option { return func(c *config) { c.onStep = f } }

// told is a step of the engine as it is passed on.
func told(p *protocol.Step) Step {
	return Step{Kind: string(p.Kind), At: p.At, TaskID: p.TaskID, Operation: operations[p.Operation],
		Attempt: p.Attempt, Class: string(p.Class), Traceparent: p.Trace}
}
