package protocol

import "time"

// Claim decides what becomes of a due task when a runner, or repair, comes by.
// It is called inside the transaction that read the task, so what it sees is
// what is written over. claimed says that the caller now holds the lease and
// must run the task; otherwise the write, if any, ended it.
//
// The attempt is counted here, before anything can crash: a task that kills
// every runner still comes to its limit.
func Claim(t Task, owner, token string, lease time.Duration, now time.Time) (ws WriteSet, claimed, write bool) {
	if at, ok := t.Due(); !ok || at.After(now) {
		return WriteSet{}, false, false
	}
	ws.If = Condition{State: t.State, Token: t.Lease.Token, Version: t.Version}
	if t.State == Succeeded {
		// Only its projection waits. It is done outside the lease protocol:
		// doing it twice is harmless.
		t.NextAttempt, t.UpdatedAt = now.Add(lease), now
		ws.Task = t
		return ws, true, true
	}
	if t.State == Failed {
		// Nobody redrove it in time. What it is and how it ended stay.
		t.Command, t.Plan, t.NextAttempt = nil, t.Plan.redacted(), time.Time{}
		ws.Task = t
		return ws, false, true
	}
	if t.Attempts >= t.MaxAttempts {
		if t.Committed {
			end := finish(&t, now)
			end.If = ws.If
			return end, false, true
		}
		// The last runner it was given died or lost its lease.
		end := fail(&t, Fail(Interrupted, "the runner of the last attempt was lost"), Workspace{}, 0, now)
		end.If = ws.If
		return end, false, true
	}
	if t.State == Running {
		t.Failure = Fail(Interrupted, "a runner was lost")
	}
	t.Attempts++
	t.Lease = Lease{Owner: owner, Token: token, Expires: now.Add(lease)}
	t.NextAttempt = time.Time{}
	if t.StartedAt.IsZero() {
		t.StartedAt = now
	}
	ws.Transition = new(t.move(Running, now))
	ws.Task = t
	return ws, true, true
}

// held is the condition of every write of a runner: its lease, and the row it
// has seen. The lease alone is not enough: a write whose answer was lost has
// been made all the same, and the next one would write over it.
func held(t *Task) Condition {
	return Condition{State: Running, Token: t.Lease.Token, Version: t.Version}
}

// Extend moves the lease's end. A lease that is over but that nobody took is
// the runner's still.
func Extend(t Task, lease time.Duration, now time.Time) WriteSet {
	ws := WriteSet{If: held(&t)}
	t.Lease.Expires = now.Add(lease)
	ws.Task = t
	return ws
}

// GiveBack ends a runner's attempt because the runner has to stop, and for no
// fault of the task: it is due at once, and the attempt is not counted.
func GiveBack(t Task, now time.Time) WriteSet {
	ws := WriteSet{If: held(&t)}
	t.Attempts--
	t.Lease = Lease{}
	t.NextAttempt = now
	ws.Transition = new(t.move(Retrying, now))
	ws.Transition.Class, ws.Transition.Code = "", "" // of an attempt before this one
	ws.Task = t
	return ws
}

// FreezePlan fixes what the task will write. judged[i] is what is made of
// facts[i]; first is the first of as many numbers as Numbers says. A plan is
// frozen once: a second call is stopped.
func FreezePlan(t Task, facts []Fact, judged []Judgment, first int64, now time.Time) (WriteSet, error) {
	if t.Plan != nil {
		return WriteSet{}, broken("task %s has a frozen plan", t.ID)
	}
	if len(judged) != len(facts) {
		return WriteSet{}, broken("%d facts, %d judged", len(facts), len(judged))
	}
	ws := WriteSet{If: held(&t)}
	t.Plan = newPlan(&t, facts, judged, first)
	t.UpdatedAt = now
	ws.Task = t
	return ws, nil
}

// Commit writes the records of the plan, takes away those whose place they take,
// and says that it is done.
func Commit(t Task, now time.Time) (WriteSet, error) {
	switch {
	case t.Plan == nil:
		return WriteSet{}, broken("task %s has no plan", t.ID)
	case t.Committed:
		return WriteSet{}, broken("task %s committed already", t.ID)
	case t.Command == nil:
		return WriteSet{}, broken("task %s has no command", t.ID)
	}
	ws := WriteSet{If: held(&t), Records: records(&t, now), Superseded: t.Plan.superseded()}
	t.Committed, t.UpdatedAt = true, now
	if len(ws.Records) > 0 {
		t.Projection = ProjectionPending
	}
	ws.Task = t
	return ws, nil
}

// Projected says that search knows the task's records. On a task that SUCCEEDED
// it needs no lease.
func Projected(t Task, now time.Time) WriteSet {
	ws := WriteSet{If: held(&t), Projected: true}
	if t.State == Succeeded {
		ws.If = Condition{State: Succeeded, Version: t.Version}
		t.NextAttempt = time.Time{}
	}
	t.Projection, t.UpdatedAt = ProjectionReady, now
	ws.Task = t
	return ws
}

// Finish ends a committed task: SUCCEEDED, the reservation settled, the raw
// input gone, in one transaction.
func Finish(t Task, now time.Time) (WriteSet, error) {
	if !t.Committed {
		return WriteSet{}, broken("task %s has committed nothing", t.ID)
	}
	ws := finish(&t, now)
	ws.If = Condition{State: Running, Token: ws.If.Token, Version: ws.If.Version}
	return ws, nil
}

func finish(t *Task, now time.Time) WriteSet {
	ws := WriteSet{If: held(t)}
	t.Result = &Result{Outcome: NoMemory, Records: t.Plan.Evidence}
	if len(t.Plan.Evidence) > 0 {
		t.Result.Outcome = Stored
	}
	t.Failure = nil
	t.Command = nil
	t.Plan = t.Plan.redacted()
	t.Lease = Lease{}
	t.CompletedAt = now
	t.NextAttempt = time.Time{}
	if t.Projection == ProjectionPending {
		t.NextAttempt = now
	}
	ws.Transition = new(t.move(Succeeded, now))
	ws.Entries = ending(t, Settle, now)
	ws.Task = *t
	return ws
}

// Failing decides what a failed attempt of a runner leads to: another attempt
// after wait, or FAILED with the reservation released. Once records are there
// neither is possible at the limit: the task SUCCEEDS and its projection waits.
func Failing(t Task, f *Failure, w Workspace, wait time.Duration, now time.Time) WriteSet {
	cond := held(&t)
	if f.Class == InvalidOutput {
		t.Invalid++
	}
	var ws WriteSet
	if t.Committed && !again(&t, f, w.Extraction) {
		ws = finish(&t, now)
	} else {
		ws = fail(&t, f, w, wait, now)
	}
	ws.If = cond
	return ws
}

func fail(t *Task, f *Failure, w Workspace, wait time.Duration, now time.Time) WriteSet {
	var ws WriteSet
	t.Failure = f
	t.Lease = Lease{}
	if again(t, f, w.Extraction) {
		t.NextAttempt = now.Add(wait)
		ws.Transition = new(t.move(Retrying, now))
		ws.Task = *t
		return ws
	}
	t.CompletedAt = now
	if t.redrivable() {
		t.NextAttempt = now.Add(FailedRetention)
	} else {
		t.Command, t.Plan, t.NextAttempt = nil, t.Plan.redacted(), time.Time{}
	}
	ws.Transition = new(t.move(Failed, now))
	ws.Entries = ending(t, Release, now)
	// A reference or turn that produced nothing must not answer "already
	// there": the caller sends it again. A key keeps its operation, which is
	// redriven.
	ws.Free = t.Identity.FirstWins
	ws.Task = *t
	return ws
}

// FailedRetention is how long a FAILED task keeps its command, which a redrive
// needs. What cannot be redriven keeps nothing: its caller sends it again.
const FailedRetention = 30 * 24 * time.Hour

// redrivable says whether a FAILED task of this kind may run again.
func (t *Task) redrivable() bool { return t.Kind == Infer }

// Redrive decides about a caller's wish to run a task again. change is false
// when it runs already.
func Redrive(t Task, w Workspace, now time.Time) (ws WriteSet, change bool, err error) {
	if !t.redrivable() || t.State == Succeeded || (t.State == Failed && t.Command == nil) {
		return WriteSet{}, false, ErrNotRetryable
	}
	if t.State != Failed && t.State != Retrying {
		ws.Task = t
		return ws, false, nil
	}
	if t.Command == nil {
		return WriteSet{}, false, broken("task %s lost its command", t.ID)
	}
	ws.If = Condition{State: t.State, Version: t.Version}
	if t.State == Failed {
		// The old reservation was released; an old failed task is no claim on
		// credits of today.
		t.Run++
		t.Account = AccountAt(t.Workspace, t.Account.Unit, now)
		ws.Entries = reserve(&t, w, now)
	}
	t.Attempts, t.Invalid, t.Failure = 0, 0, nil
	t.StartedAt, t.CompletedAt = time.Time{}, time.Time{}
	t.NextAttempt = now
	ws.Transition = new(t.move(Pending, now))
	ws.Task = t
	return ws, true, nil
}

// Numbers is how many record numbers a plan of these facts takes.
func Numbers(k Kind, judged []Judgment) int {
	if k.Wire() != MemorySync {
		return 0
	}
	n := 0
	for _, j := range judged {
		if j.Existing == nil {
			n++
		}
	}
	return n
}

// InputOf is what the extractor reads of a task.
func InputOf(t Task) Input {
	c := t.Command
	return Input{Kind: t.Kind, Scope: t.Scope, Text: c.Text, Messages: c.Messages, Speaker: c.Speaker, OccurredAt: c.OccurredAt, EventDate: c.EventDate}
}
