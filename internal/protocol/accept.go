package protocol

import "time"

// Proposal is a command on its way to be accepted.
type Proposal struct {
	Workspace   Workspace
	Command     *Command
	TaskID      string // new; used only when there is no twin
	MaxAttempts int
	Now         time.Time
	Targets     []Record // of a deletion: the live records it takes away
	// PaidBy is an earlier task of the same call, when a call with many
	// commands is charged once. It pays if it SUCCEEDED and was charged itself:
	// that is final, so a command it pays for is never left without a payer.
	// Anything else, nil too, and the command reserves for itself.
	PaidBy *Task
}

// Accept says what a new command writes, in one transaction: its task, its
// identity, its reservation and its first transition. A Verbatim command holds
// its own records, so its whole life, up to the settlement, is in there; and so
// is that of a deletion, which costs nothing.
func Accept(p Proposal) Acceptance {
	c, now := p.Command, p.Now
	unit, amount := price(c.Kind)
	t := Task{
		ID: p.TaskID, Workspace: p.Workspace.ID, Kind: c.Kind, Scope: c.Scope,
		Identity: IdentityOf(p.Workspace.ID, c), Fingerprint: Fingerprint(c), Command: c,
		Run: 1, MaxAttempts: p.MaxAttempts, NextAttempt: now,
		Projection: ProjectionNone, Account: AccountAt(p.Workspace.ID, unit, now), Amount: amount,
		CreatedAt: now,
	}
	a := Acceptance{At: now}
	if c.Kind.deletes() {
		return deletion(a, t, p.Targets)
	}
	if pays(p.PaidBy, &t) {
		t.Account, t.Amount, t.Reservation = p.PaidBy.Account, 0, p.PaidBy.Reservation
	} else {
		a.Entries = reserve(&t, p.Workspace, now)
	}
	a.Transitions = append(make([]Transition, 0, 2), t.move(Pending, now)) // with room for its claim
	if c.Kind == Verbatim {
		t.Attempts, t.StartedAt = 1, now
		a.Transitions = append(a.Transitions, t.move(Running, now))
		var facts []Fact
		for _, text := range c.inputs() {
			facts = append(facts, Fact{Text: text, Type: "fact"})
		}
		t.Plan = newPlan(&t, facts, make([]Judgment, len(facts)), 0)
		a.Records = records(&t, now)
		t.Committed, t.Projection = true, ProjectionPending
		end := finish(&t, now)
		a.Entries = append(a.Entries, end.Entries...)
		a.Transitions = append(a.Transitions, *end.Transition)
	}
	a.Task = t
	return a
}

// deletion is the whole life of a task that takes records away. Its evidence
// names them and holds nothing of what they said.
func deletion(a Acceptance, t Task, targets []Record) Acceptance {
	now := a.At
	t.Account, t.Amount = Account{}, 0
	t.Attempts, t.StartedAt = 1, now
	a.Transitions = []Transition{t.move(Pending, now), t.move(Running, now)}
	t.Plan = newPlan(&t, nil, nil, 0)
	t.Result = &Result{Outcome: Deleted, Records: make([]Evidence, 0, len(targets))}
	for _, r := range targets {
		t.Result.Records = append(t.Result.Records, Evidence{ID: r.ID, Number: r.Number, Existing: true})
		a.Tombstones = append(a.Tombstones, r.Forget(now))
	}
	t.Command, t.Committed = nil, true
	t.CompletedAt, t.NextAttempt = now, time.Time{}
	a.Transitions = append(a.Transitions, t.move(Succeeded, now))
	a.Task = t
	return a
}

// Claimed is the acceptance of a command whose runner is there already: task and
// lease are made in one transaction.
func (a Acceptance) Claimed(owner, token string, lease time.Duration) Acceptance {
	ws, claimed, _ := Claim(a.Task, owner, token, lease, a.Task.CreatedAt)
	if claimed {
		a.Task = ws.Task
		a.Transitions = append(a.Transitions, *ws.Transition)
	}
	return a
}

// pays says whether a task's settlement covers another command as well.
func pays(by, t *Task) bool {
	return by != nil && by.State == Succeeded && by.Amount > 0 && by.Workspace == t.Workspace && by.Kind == t.Kind
}

// reserve opens the account if it is not, and holds the price of a run.
func reserve(t *Task, w Workspace, now time.Time) []Entry {
	t.Reservation = entryID(Reserve, t.ID, t.Run)
	return []Entry{
		Opening(w, t.Account, now),
		{ID: t.Reservation, Account: t.Account, Kind: Reserve, Amount: t.Amount, TaskID: t.ID, Run: t.Run, At: now},
	}
}

// JudgeTwin decides about a command whose identity another task holds already:
// nil is a replay of that task, whatever became of it, and ErrConflict another
// command under its key.
func JudgeTwin(proposed, twin Task) error {
	if twin.Workspace != proposed.Workspace || twin.Identity.Hash != proposed.Identity.Hash {
		return broken("task %s is no twin", twin.ID)
	}
	if twin.Identity.FirstWins || twin.Fingerprint == proposed.Fingerprint {
		return nil
	}
	return ErrConflict
}
