package protocol

// CheckTask judges one row by itself. Stores call it before they write one:
// a row that breaks the protocol is stopped rather than kept.
func CheckTask(t *Task) error {
	switch t.State {
	case Pending, Running, Retrying, Succeeded, Failed:
	default:
		return broken("task %s is %q", t.ID, t.State)
	}
	switch {
	case t.Lease.Held() != (t.State == Running):
		return broken("task %s is %s and its lease is held: %v", t.ID, t.State, t.Lease.Held())
	case t.State == Running && t.Lease.Expires.IsZero():
		return broken("task %s has a lease without an end", t.ID)
	case t.Attempts > t.MaxAttempts: // I6
		return broken("task %s is at attempt %d of %d", t.ID, t.Attempts, t.MaxAttempts)
	case t.Attempts == t.MaxAttempts && (t.State == Pending || t.State == Retrying): // I6
		return broken("task %s is %s after the last of %d attempts", t.ID, t.State, t.MaxAttempts)
	case t.Committed && t.Plan == nil:
		return broken("task %s committed without a plan", t.ID)
	case t.State == Succeeded && !t.Committed: // I4
		return broken("task %s succeeded without a commit", t.ID)
	case t.State == Failed && t.Committed: // I4
		return broken("task %s failed with records committed", t.ID)
	case (t.Result != nil) != (t.State == Succeeded):
		return broken("task %s is %s and has a result: %v", t.ID, t.State, t.Result != nil)
	case t.Command == nil && !t.State.Terminal(), t.Command != nil && t.State == Succeeded: // I13
		return broken("task %s is %s and has its input: %v", t.ID, t.State, t.Command != nil)
	case t.Command == nil && t.Plan.told(): // I13
		return broken("task %s is %s and its plan still says the facts", t.ID, t.State)
	case t.State == Failed && (t.Command == nil) != t.NextAttempt.IsZero():
		return broken("task %s is FAILED and keeps its input: %v, until %v", t.ID, t.Command != nil, t.NextAttempt)
	case t.Amount < 0 || (t.Amount > 0 && t.Reservation == ""): // I7
		return broken("task %s costs %d and has the reservation %q", t.ID, t.Amount, t.Reservation)
	case t.State.Terminal() == t.CompletedAt.IsZero():
		return broken("task %s is %s and its end is %v", t.ID, t.State, t.CompletedAt)
	}
	return nil
}

// CheckStep judges a row against the one it replaces.
func CheckStep(old, now *Task) error {
	switch {
	case old.ID != now.ID || old.Workspace != now.Workspace || old.Kind != now.Kind || old.Identity != now.Identity || old.Fingerprint != now.Fingerprint:
		return broken("task %s changes what it is", old.ID)
	case old.State == Succeeded && now.State != Succeeded: // I3
		return broken("task %s leaves SUCCEEDED", old.ID)
	case old.State == Failed && !forgets(old, now) && (now.State != Pending || now.Run != old.Run+1): // I3
		return broken("task %s leaves FAILED without a new run", old.ID)
	case old.Plan != nil && (now.Plan == nil || now.Plan.Hash != old.Plan.Hash): // I8
		return broken("task %s changes a frozen plan", old.ID)
	case old.Committed && !now.Committed:
		return broken("task %s takes a commit back", old.ID)
	case now.Transitions < old.Transitions || now.Transitions > old.Transitions+1:
		return broken("task %s skips a transition", old.ID)
	}
	return CheckTask(now)
}

// forgets says that a FAILED task only gives up what it kept for a redrive.
func forgets(old, now *Task) bool {
	return now.State == Failed && now.Command == nil && now.Run == old.Run && now.Transitions == old.Transitions && now.CompletedAt.Equal(old.CompletedAt)
}

// Check holds a whole store against the invariants a snapshot can show:
// I1, I3, I4, I6, I7 and I13. The others are about what happens in between.
func Check(s Snapshot) error {
	tasks := make(map[string]*Task, len(s.Tasks))
	live := map[Hash]string{}
	for i := range s.Tasks {
		t := &s.Tasks[i]
		if err := CheckTask(t); err != nil {
			return err
		}
		if tasks[t.ID] != nil {
			return broken("task %s is there twice", t.ID)
		}
		tasks[t.ID] = t
		if h := t.Identity.Hash; !h.IsZero() && t.Identity.Window == 0 && t.State != Failed {
			if other := live[h]; other != "" {
				return broken("tasks %s and %s are one command", other, t.ID) // I1
			}
			live[h] = t.ID
			if s.Identities[h] != t.ID {
				return broken("task %s does not hold its identity", t.ID)
			}
		}
	}
	if err := checkRecords(s, tasks); err != nil {
		return err
	}
	if err := checkHistory(s, tasks); err != nil {
		return err
	}
	return checkLedger(s, tasks)
}

func checkRecords(s Snapshot, tasks map[string]*Task) error {
	made := map[string]map[string]bool{}
	numbers := map[int64]bool{}
	forgotten := map[string]bool{}
	for _, r := range s.Records {
		forgotten[r.ID] = r.Forgotten
		t := tasks[r.TaskID]
		if t == nil || !t.Committed || t.Workspace != r.Workspace {
			return broken("record %s belongs to no committed task", r.ID)
		}
		if made[r.TaskID] == nil {
			made[r.TaskID] = map[string]bool{}
		}
		if made[r.TaskID][r.ID] || (r.Number != 0 && numbers[r.Number]) {
			return broken("record %s is there twice", r.ID)
		}
		made[r.TaskID][r.ID] = true
		numbers[r.Number] = true
		if (r.Forgotten && r.Text != "") || (!r.Forgotten && r.SupersededBy != "") {
			return broken("record %s is forgotten: %v, and superseded by %q", r.ID, r.Forgotten, r.SupersededBy)
		}
	}
	for id, t := range tasks {
		if !t.Committed {
			continue
		}
		if len(made[id]) != len(t.Plan.Mutations) {
			return broken("task %s planned %d records and has %d", id, len(t.Plan.Mutations), len(made[id]))
		}
		for _, m := range t.Plan.Mutations {
			if !made[id][m.RecordID] {
				return broken("task %s lacks record %s", id, m.RecordID)
			}
			for _, old := range m.Supersedes {
				if gone, ok := forgotten[old]; ok && !gone {
					return broken("record %s is there beside %s, which took its place", old, m.RecordID)
				}
			}
		}
	}
	return nil
}

// checkHistory holds every task's transitions against its row: numbered without
// a gap, each starting where the last ended, one terminal a run; and those of a
// workspace in the order of their positions.
func checkHistory(s Snapshot, tasks map[string]*Task) error {
	last := map[string]Transition{}
	at := map[string]int64{}
	for _, tr := range s.Transitions {
		if tr.Position <= at[tr.Workspace] {
			return broken("transition %s is out of order", tr.ID)
		}
		at[tr.Workspace] = tr.Position
		p := last[tr.TaskID]
		if tr.Number != p.Number+1 || tr.From != p.To {
			return broken("task %s goes from %s to %s at step %d after %s", tr.TaskID, tr.From, tr.To, tr.Number, p.To)
		}
		if p.To == Succeeded || (p.To == Failed && tr.Run != p.Run+1) { // I3
			return broken("task %s goes on after its end", tr.TaskID)
		}
		last[tr.TaskID] = tr
	}
	for id, t := range tasks {
		if p := last[id]; p.To != t.State || p.Number != t.Transitions {
			return broken("task %s is %s and its history says %s", id, t.State, p.To)
		}
	}
	return nil
}

// checkLedger adds everything up again (I7).
func checkLedger(s Snapshot, tasks map[string]*Task) error {
	sums := map[Account]Balance{}
	open := map[string]Entry{}
	ended := map[string]EntryKind{}
	reserved := map[string]Entry{}
	seen := map[string]bool{}
	for _, e := range s.Entries {
		if seen[e.ID] {
			return broken("entry %s is there twice", e.ID)
		}
		seen[e.ID] = true
		b := sums[e.Account]
		b.Account = e.Account
		b, err := b.Apply(e)
		if err != nil {
			return err
		}
		sums[e.Account] = b
		switch e.Kind {
		case Reserve:
			open[e.ID], reserved[e.ID] = e, e
		case Settle, Release:
			r, ok := open[e.Of]
			if !ok || r.Amount != e.Amount || r.Account != e.Account || r.TaskID != e.TaskID {
				return broken("entry %s ends no reservation", e.ID)
			}
			delete(open, e.Of)
			ended[e.Of] = e.Kind
		}
	}
	for _, b := range s.Balances {
		if sums[b.Account] != b {
			return broken("the balance of %s is not the sum of its entries", b.Account.Unit)
		}
	}
	for id, t := range tasks {
		if t.Kind.deletes() {
			if t.Reservation != "" {
				return broken("task %s is a deletion and has a reservation", id)
			}
			continue
		}
		if t.Amount == 0 {
			// Another task pays: one that was charged, and not this one.
			if r := reserved[t.Reservation]; ended[t.Reservation] != Settle || r.TaskID == id || r.Account != t.Account {
				return broken("task %s is paid for by reservation %s, which did not settle", id, t.Reservation)
			}
			continue
		}
		_, held := open[t.Reservation]
		if held == t.State.Terminal() {
			return broken("task %s is %s and its reservation is open: %v", id, t.State, held)
		}
		if t.State.Terminal() && (ended[t.Reservation] == Settle) != (t.State == Succeeded) {
			return broken("task %s is %s and its reservation was ended by %s", id, t.State, ended[t.Reservation])
		}
		delete(open, t.Reservation)
	}
	for id := range open {
		return broken("reservation %s belongs to no task", id)
	}
	return nil
}
