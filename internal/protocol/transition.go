package protocol

import (
	"encoding/hex"
	"strconv"
	"time"
)

// Transition is one row of a task's history. It holds nothing of the input.
type Transition struct {
	// ID is TransitionID of the task and the number, never minted: telling it
	// twice cannot look like two. Whoever keeps or reads a history derives it; a
	// step on its way to the store has none.
	ID        string
	Position  int64 // its place in the workspace's history; given by the store
	Workspace string
	TaskID    string
	Number    int // 1, 2, … within the task
	Run       int
	Attempt   int
	From, To  State // From is empty for the first
	Class     Class // of the failure that led here
	Code      string
	At        time.Time
}

// TransitionID is the id of a task's transition.
func TransitionID(task string, number int) string {
	h := hashOf("transition", task, strconv.Itoa(number))
	return string(hex.AppendEncode(append(make([]byte, 0, 35), "tr_"...), h[:16]))
}

// move changes the state and gives the row that says so.
func (t *Task) move(to State, now time.Time) Transition {
	t.Transitions++
	tr := Transition{Workspace: t.Workspace, TaskID: t.ID, Number: t.Transitions, Run: t.Run, Attempt: t.Attempts, From: t.State, To: to, At: now}
	if t.Failure != nil && (to == Retrying || to == Failed) {
		tr.Class, tr.Code = t.Failure.Class, t.Failure.Code
	}
	t.State = to
	t.UpdatedAt = now
	return tr
}
