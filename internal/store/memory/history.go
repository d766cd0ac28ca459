package memory

import (
	"slices"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// change is a transition as it is kept: without what its task says already, and
// without the id that follows from both. There are several to every task, and
// they stay for good.
type change struct {
	row                  *row
	because              *cause // nil without a failure
	at                   time.Time
	position             int64
	number, run, attempt int32
	from, to             stateNumber
}

// cause is the failure that led to a transition.
type cause struct {
	class protocol.Class
	code  string
}

// stateNumber is a state's place in states.
type stateNumber uint8

var states = [...]protocol.State{"", protocol.Pending, protocol.Running, protocol.Retrying, protocol.Succeeded, protocol.Failed}

func numberOf(s protocol.State) stateNumber { return stateNumber(slices.Index(states[:], s)) }

// note appends a transition of a row to the history of its workspace.
func (s *Store) note(sp *space, r *row, tr *protocol.Transition) {
	s.position++
	c := change{row: r, at: tr.At, position: s.position, number: int32(tr.Number), run: int32(tr.Run), attempt: int32(tr.Attempt), from: numberOf(tr.From), to: numberOf(tr.To)}
	if tr.Class != "" || tr.Code != "" {
		c.because = &cause{tr.Class, tr.Code}
	}
	sp.changes.append(c)
}

func (c *change) transition() protocol.Transition {
	tr := protocol.Transition{
		ID: protocol.TransitionID(c.row.task.ID, int(c.number)), Position: c.position, Workspace: c.row.task.Workspace, TaskID: c.row.task.ID,
		Number: int(c.number), Run: int(c.run), Attempt: int(c.attempt), From: states[c.from], To: states[c.to], At: c.at,
	}
	if c.because != nil {
		tr.Class, tr.Code = c.because.class, c.because.code
	}
	return tr
}

// history is the transitions i to j.
func (sp *space) history(i, j int) []protocol.Transition {
	if i >= j {
		return nil
	}
	out := make([]protocol.Transition, 0, j-i)
	for ; i < j; i++ {
		out = append(out, sp.changes.at(i).transition())
	}
	return out
}
